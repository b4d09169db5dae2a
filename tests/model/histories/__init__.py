"""Random histories: what users, controllers, networks, disks and operators do to an agent, a step at a time.

`machine` takes the steps of plain kinds, `policy_machine` those of SyncPolicies, `keeping_machine` those of
what keeps copies.
"""

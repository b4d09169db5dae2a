"""The controllers of a fleet: informers, writers and the leader's Lease. They carry out what `domain` decides.

How a request is sent and repeated is `runtime`'s; how HTTP is spoken is the adapters'.
"""

"""What the cloud has to have so that a robot is confined: manifests and admission policies, as values.

What the account must not be allowed is in `core/accounts`.
"""

"""How one kind is synced: annotations and SyncPolicies, read, checked and merged into a KindPolicy.

What is done about its objects belongs to `core/pair`.
"""

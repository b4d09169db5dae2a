"""C1 to C9, the rules of SyncPolicies: the real engine on virtual time, a test for each promise.

The files are named after the sections of `content.md`.
"""

"""The kinds that are synced: which there are, how each is configured, negotiated, started, edited and stopped.

What is done about one object belongs to `engine/pairs`.
"""

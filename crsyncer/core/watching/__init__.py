"""One API server over time: reading watches, restores, identity, waits, the work queue and its pace.

Knows no pair of clusters and no policy: `runtime` stands on it.
"""

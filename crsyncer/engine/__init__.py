"""The two-cluster engine: kinds, reconciler, writer, outbox, deletion holds, audit.

What is decided about one pair of objects belongs to `core`; what operators ask belongs to `console`. A restored or
rebuilt cluster is noticed in `runtime` (`listwatch` and `collection_state`).
"""

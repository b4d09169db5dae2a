"""The two-cluster engine: kinds, reconciler, writer, outbox, deletion holds, restores, audit.

What is decided about one pair of objects belongs to `core`; what operators ask belongs to `console`.
"""

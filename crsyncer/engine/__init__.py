"""The two-cluster engine: kinds, reconciler, writer, outbox, deletion holds, audit.

What is decided about one pair of objects belongs to `core`; what operators ask belongs to `console`. A restored cluster
is noticed by `core/watching/restore_detection.py`, a rebuilt one by `runtime/cluster_identity.py`. Rules such as S5.5
are those of the project's design.
"""

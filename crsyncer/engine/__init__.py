"""The two-cluster engine: kinds, reconciler, writer, outbox, deletion holds, audit.

What is decided about one pair of objects belongs to `core`; what operators ask belongs to `console`. A restored cluster
is noticed by `runtime/resume_check.py`, a rebuilt one by `runtime/cluster_identity.py`. `make rules` lists the rules
that are cited, such as S5.5.
"""

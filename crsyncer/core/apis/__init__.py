"""CRDs that travel: revisions, what breaks, and the plan for one CRD (C8).

The kinds of which they are the CRDs belong to `core/kinds`.
"""

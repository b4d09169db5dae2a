"""Which objects go with a primary, and how their kind is synced (C5).

The entries of policies are read in `core/kinds`.
"""

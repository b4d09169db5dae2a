"""A made-up world for the real agent: two simulated API servers, a disk that forgets, time that costs nothing.

`world` has the verbs, `check` what must never happen, `steps` random histories, `mutants` defects that must be noticed.
"""

"""The made-up world: two simulated API servers, a disk that forgets, links that break, time that costs nothing.

`world` has the verbs, `plane` those of one cluster, `check` and `judge` say what must never happen.
"""

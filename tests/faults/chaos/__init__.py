"""A chaos run: writers and faults drawn from a seed, real planes, and a checker of everything that was seen.

`make chaos SECONDS=600 SEED=7`. The schedule is drawn beforehand (`schedule`), played (`play`, `writers`, `faults`),
recorded past the links (`recorder`) and judged by pure functions (`checker`, `relists`); a violation is told as the
story of its object (`report`).
"""

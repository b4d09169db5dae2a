"""The content of objects as values: paths, templates, steps, merging, digests, what travels and what does not.

Knows no kind, no policy in force and no pair: how a kind is configured belongs to `core/kinds`.
"""

"""One pair of objects: what both sides show, what is to be done about it, and the requests that do it.

What keeps deletions back belongs to `core/holds`.
"""

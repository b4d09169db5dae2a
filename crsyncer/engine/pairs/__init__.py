"""One pair of objects in motion: reconciler, writer, outbox, finalizers, and what keeps deletions back.

Every decision is made in `core/pair` and `core/holds`.
"""

"""What is held back for a human: which deletions, why, and what ends that (S5.5).

What is done about a single pair belongs to `core/pair`.
"""

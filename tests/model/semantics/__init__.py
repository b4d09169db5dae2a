"""S1 to S10, the rules of every kind: the real engine on virtual time, a test for each promise.

The files are named after the sections of `semantics.md`, or after what an operator would look for.
"""

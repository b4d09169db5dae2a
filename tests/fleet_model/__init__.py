"""The fleet controller on virtual time: one simulated API server, several controllers, and what befalls them.

The server, the clock and the links are those of `tests/model`.
"""

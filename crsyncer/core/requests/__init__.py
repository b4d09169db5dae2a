"""Requests to an API server as values, and what their answers mean (S10).

Requests about one pair of objects are in `core/pair`.
"""

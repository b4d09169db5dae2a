"""Throw-away control planes for demo, tests and benchmarks: real API servers, and a link that can be cut.
The agent never imports it. Fault instruments that only tests use do not belong here.
"""

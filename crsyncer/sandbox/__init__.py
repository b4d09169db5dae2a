"""Throw-away control planes for demo, tests and benchmarks: real API servers, and a link that fails on command.
The agent never imports it; nothing here may need more than Python, aiohttp and what it builds for itself.
"""

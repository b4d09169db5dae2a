"""What is decided of the front door, pure as `core` is: HAProxy's files, the map, keys, streams to end, health.

No clock, no I/O, no third party. Whatever acts on it is a floor above.
"""

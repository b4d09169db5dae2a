"""The controllers of the fleet: informers in, guarded writes out.

What is to be done is decided in `fleet/domain`; nothing here reads a field of an object to decide anything.
"""

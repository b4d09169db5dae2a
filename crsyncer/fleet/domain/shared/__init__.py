"""Shared mode: one object for many robots, whose statuses are objects of their own (F10.3). No I/O and no clock.

The copies on shards are not here: they are replicas without a robot.
"""

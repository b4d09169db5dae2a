"""Splits a shard: reads the shard, its clone and the doors, and takes the steps that `domain/split_plan.py` decides on.

What is compared and which steps may be taken is decided there, not here.
"""

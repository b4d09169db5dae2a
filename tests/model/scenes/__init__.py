"""Worlds that many tests begin in: a kind with a policy, related objects, another name in the cloud, a fleet.

Each module makes one sort of world, and says what there is to be seen in it.
"""

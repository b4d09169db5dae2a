"""F9 and F10, what an agent does for a fleet: its reports, and the statuses of shared objects.

The controller itself is in `tests/fleet_model`.
"""

"""What operators change: control commands, finalizers of lost robots, paused APIs.

What they only read belongs to the other rooms.
"""

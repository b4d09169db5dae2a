"""The demo's stories: steps on throw-away control planes, each of which is checked.

Planes, programs and links are in the room above.
"""

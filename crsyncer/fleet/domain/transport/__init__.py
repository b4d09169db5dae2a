"""Where replicas are: the API server of each robot, and how a replica is known there. Decides, and sends nothing.

What a replica contains, and when it is written, is decided elsewhere.
"""

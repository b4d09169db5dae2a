"""The front door: HAProxy's configuration, keys and map for the robots of several API servers, and their upkeep.

HAProxy does the work: nothing here parses, proxies or caches Kubernetes for a robot, and no right is used but reading
Robots.
"""

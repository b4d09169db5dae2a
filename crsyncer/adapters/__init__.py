"""The hands: one file per outside thing (API server, disk, configuration, sockets).
They decide nothing, and none imports another.
"""

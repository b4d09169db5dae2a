"""Tells what happened: the log, events, Kubernetes Events, liveness.

What `status` shows belongs to `console`.
"""

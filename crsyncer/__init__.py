"""Federates Kubernetes custom resources between a cloud and its robots, offline first."""

__version__ = "0.1.0"

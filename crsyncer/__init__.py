"""Federates Kubernetes custom resources between a cloud and its robots, offline first.

Numbers such as S5.4 name the rules that tests are named after: `make rules` lists them.
"""

__version__ = "0.1.0"

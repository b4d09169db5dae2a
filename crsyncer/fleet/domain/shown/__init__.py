"""The documents of the fleet: what its commands and its page show, made of values.

Texts for a terminal or a browser are made of these documents elsewhere.
"""

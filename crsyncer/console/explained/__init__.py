"""Why one object is, or is not, on the other side.

How two objects differ is in `console/compare`.
"""

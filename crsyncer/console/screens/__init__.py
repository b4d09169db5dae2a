"""What `status` shows: gathered, judged and drawn.

The reasons and their remedies are here; what is found out of one object belongs to `console/explained`.
"""

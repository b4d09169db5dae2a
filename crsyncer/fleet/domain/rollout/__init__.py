"""How a placement's changes reach its robots: their reports, their states, and what the Decisions remember (F8, F9).

What a replica contains, and whether it goes, is decided in the rooms beside this one.
"""

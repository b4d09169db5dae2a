"""Deliberate defects, each a guard of the agent taken away: a test or a random history has to notice each.

`noticing` runs the tests that a defect names; `known_defects` are those that users met.
"""

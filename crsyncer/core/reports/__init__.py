"""What happened, as values: facts, events, findings, and the words for times and numbers.

What `status` makes of it belongs to `console`.
"""

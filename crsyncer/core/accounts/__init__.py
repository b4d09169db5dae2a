"""What the agent's accounts need, must not be allowed, and how short tokens are made.

Which requests that concerns is in `core/requests` and `core/pair`.
"""

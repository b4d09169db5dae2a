"""The state directory: everything that knows SQLite, its files and their faults, and nobody else does. What must be
read while no agent runs (`offline`, `statedir`, `codec`) brings no library; who wants the store asks `store` for it.
"""

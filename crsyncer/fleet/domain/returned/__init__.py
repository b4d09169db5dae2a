"""What comes of the statuses that robots return: `readyWhen`, CombinedStatuses, and the status of a singleton (F6, F7).

Nothing here writes, and nothing here decides about a replica: rooms beside this one do.
"""

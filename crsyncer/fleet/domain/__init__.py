"""The fleet as values: selection, rendering, removal, rollout, and what statuses say. Pure, like `core`.

Nothing here touches the world: time, in seconds, is an argument. The controllers carry its plans out.
"""

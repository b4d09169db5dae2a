"""A controller runtime for one API server: connection, cluster identity, list-watch, resume check, dispatcher.

It knows asyncio and the ports; it knows no pair of clusters and no policy.
"""

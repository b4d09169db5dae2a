"""The nerves: carries values to the core and its plans away, on asyncio and the ports only.
No HTTP, no SQL and no files here; time comes from the running event loop.
"""

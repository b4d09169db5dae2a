"""Pure functions and data types: values in, values out.
Nothing here touches the world: no asyncio, clock, randomness, logging, operating system or third-party package.
"""

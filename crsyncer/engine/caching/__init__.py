"""What is known of both sides: informers, the cache in memory and on disk, and whose copy an object is.

Which originals of related objects are wanted is asked of `engine/related`, by protocols that are here.
"""

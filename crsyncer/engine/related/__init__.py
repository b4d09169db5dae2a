"""Related objects: which originals primaries refer to, and what follows for the kind of these (C5).

The values are in `core/related`.
"""

"""A cluster behind a server that answers as a test wants."""

from tests.adapters.conftest import certificates, pair, reach

__all__ = ["certificates", "pair", "reach"]

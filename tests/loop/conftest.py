"""A cluster behind a server that answers as a test wants, for the nerves too."""

from tests.edges.conftest import certificates, pair, reach

__all__ = ["certificates", "pair", "reach"]

"""Who is not root: root may write where the mode says that nobody may."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's rights."""
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)

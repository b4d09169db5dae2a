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


@contextmanager
def as_root() -> Iterator[None]:
    """With root's rights again, within `as_nobody`."""
    os.seteuid(0)
    try:
        yield
    finally:
        os.seteuid(65534)

"""The store of a process without a disk: small values in memory, which its next start does not have (F1.2)."""

import json
from typing import Any


class MemoryMeta:
    """A MetaStore of the ports. Values are kept as JSON, so that nobody shares them, as of a store on disk."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def get_meta(self, name: str) -> Any:
        """A small JSON value; None when it was never set."""
        return json.loads(self._values.get(name, "null"))

    def put_meta(self, name: str, value: Any) -> None:
        """Set a small JSON value."""
        self._values[name] = json.dumps(value)

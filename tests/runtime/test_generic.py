"""The runtime knows one API server, named by text: no sides, no policy, no command, two methods of the store."""

import ast
from pathlib import Path

import pytest

import crsyncer.runtime

ALLOWED = {
    "crsyncer.core.model": {"Cursor", "Freshness", "Json", "Key", "ObjectVersion"},
    "crsyncer.ports": {"Cluster", "MetaStore", "Observer", "Reply", "Send"},
}
"""What the runtime may use of modules that the engine's words live in, too; the rest is an import contract."""


@pytest.mark.parametrize(
    "path", sorted(Path(crsyncer.runtime.__file__).parent.glob("*.py")), ids=lambda path: path.stem
)
def test_a_module_of_the_runtime_uses_nothing_of_a_pair_of_clusters(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module in ALLOWED:
            assert {name.name for name in node.names} <= ALLOWED[node.module]
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert "crsyncer holds" not in node.value, "a command is named by whoever builds the connection"

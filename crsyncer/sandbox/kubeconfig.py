"""Kubeconfig files for the planes and the links in front of them."""

import os
from pathlib import Path
from typing import Any

import yaml


def write_kubeconfig(
    path: Path,
    *,
    name: str,
    server: str,
    ca_file: Path,
    token: str | None = None,
    token_file: Path | None = None,
    namespace: str | None = None,
) -> Path:
    """Write a kubeconfig with one context, mode 0600, replacing `path` at once. Returns `path`."""
    user: dict[str, Any] = {"tokenFile": str(token_file)} if token_file else {"token": token}
    context: dict[str, Any] = {"cluster": name, "user": name}
    if namespace is not None:
        context["namespace"] = namespace
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority": str(ca_file)}}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": context}],
    }
    scratch = path.with_name(f".{path.name}.new")
    with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        yaml.safe_dump(document, file, sort_keys=False)
    scratch.replace(path)
    return path

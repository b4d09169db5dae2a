"""What can be known about a kubeconfig without asking anybody: the first look at start, before anything is touched."""

from pathlib import Path
from typing import Any

from crsyncer.adapters.config.options import absolute
from crsyncer.adapters.files import check_depth, line_of, read
from crsyncer.errors import ConfigError


def read_kubeconfig(path: Path, context: str, *, place: str, context_place: str) -> tuple[str, str, list[Path]]:
    """The context that will be used, its server, and the files it refers to; ConfigError where kubectl would fail, too.

    `context` is empty for the current one. `place` and `context_place` are how errors name the two settings.
    """
    import yaml  # not at the top: `--help` shows the options and shall not wait for it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = read(path, place)
    try:
        check_depth(text, loader)
        content = yaml.load(text, Loader=loader)  # noqa: S506 - it is a safe loader
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{place}: {path}{line_of(error)} is not YAML; allowed: a kubeconfig file") from None
    contexts = _named(content, "contexts", "context")
    if not contexts:
        raise ConfigError(f"{place}: {path} has no contexts; allowed: a kubeconfig file")
    known = ", ".join(sorted(contexts))
    name = context or content.get("current-context")
    if context and context not in contexts:
        raise ConfigError(f'{context_place} is "{context}", which {path} does not have; allowed: {known}')
    if name not in contexts:
        raise ConfigError(
            f"{place}: {path} has no valid current-context; choose one by {context_place}; allowed: {known}"
        )
    cluster = _named(content, "clusters", "cluster").get(str(contexts[name].get("cluster")), {})
    if not isinstance(cluster.get("server"), str):
        raise ConfigError(
            f"{place}: {path}: context {name} names no cluster with a server; allowed: a complete context"
        )
    if not cluster["server"].lower().startswith("https://"):
        raise ConfigError(
            f"{place}: {path}: context {name} has a server without TLS; allowed: https://HOST[:PORT][/PATH]"
        )
    user = _named(content, "users", "user").get(str(contexts[name].get("user")), {})
    references = [
        cluster.get("certificate-authority"),
        *(user.get(key) for key in ("tokenFile", "client-certificate", "client-key")),
    ]
    return name, cluster["server"], [absolute(str(reference), path.parent) for reference in references if reference]


def _named(content: Any, items: str, item: str) -> dict[str, dict[str, Any]]:
    """A kubeconfig's list of named things as a mapping; what is malformed is left out."""
    listed = content.get(items) if isinstance(content, dict) else None
    return {
        entry["name"]: entry[item]
        for entry in (listed if isinstance(listed, list) else ())
        if isinstance(entry, dict) and isinstance(entry.get("name"), str) and isinstance(entry.get(item), dict)
    }

"""What HAProxy has to know of an API server, from the login of a kubeconfig."""

import re
from urllib.parse import urlsplit

from crsyncer.adapters.kube.login import Login
from crsyncer.door.domain.door_values import Shard
from crsyncer.errors import ConfigError

_IN_CLUSTER_NAME = "kubernetes.default.svc"
"""Every API server's certificate has it. HAProxy 2.6 compares names only, no addresses."""
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
_ADDRESS = re.compile(r"[0-9.]+|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")


def shard_of(name: str, login: Login) -> Shard:
    """A shard; raises ConfigError where HAProxy cannot reach it as the kubeconfig does."""
    url = urlsplit(login.config.server)
    host = url.hostname or ""
    server_name = login.server_name or (_IN_CLUSTER_NAME if _ADDRESS.fullmatch(host) else host)
    if url.path.strip("/"):
        raise ConfigError(f"shard {name}: its server has a path ({url.path}), and HAProxy forwards paths as they are")
    if login.proxy is not None:
        raise ConfigError(f"shard {name}: its server is behind a proxy, and HAProxy uses none")
    if not (_NAME.fullmatch(host) or _ADDRESS.fullmatch(host)) or not _NAME.fullmatch(server_name):
        raise ConfigError(f"shard {name}: its server or tls-server-name is not a host name: {server_name}")
    return Shard(name, host, url.port or 443, server_name, login.identity.ca, login.identity.verify)

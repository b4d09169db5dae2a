"""Reads a kubeconfig through the Kubernetes library, in a process of its own, and prints what it found as JSON.

Of its own, because the library costs the process that imports it 21 MiB for good, writes client keys into temporary
files for as long as that process lives, and runs plug-ins and token refreshes that may hang. All of it ends here.
"""

import asyncio
import base64
import binascii
import ipaddress
import json
import os
import re
import sys
import tempfile
import urllib.request
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from crsyncer.errors import ConfigError

K3S = Path("/etc/rancher/k3s/k3s.yaml")
_TOKEN_LIKE = re.compile(r"\S{40,}")

Stamp = tuple[int, int, int]


def stamp(path: str) -> Stamp | None:
    """What changes when a file does: time, inode (a ConfigMap swaps symlinks) and size. None: it is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def main() -> None:
    """Load the kubeconfig of argv (path or "", context or "") and print the login or {"error", "hint"}."""
    path, context = sys.argv[1:3]
    answer: dict[str, Any]
    try:
        answer = load(Path(path) if path else None, context=context or None)
    except ConfigError as error:
        answer = {"error": str(error), "hint": error.hint}
    sys.stdout.write(json.dumps(answer))


def load(path: Path | None, *, context: str | None) -> dict[str, Any]:
    """Everything needed to connect, as a JSON object; raises ConfigError, whose text holds no secrets.

    Relative paths in the file count from its directory, which becomes the working directory of this process.
    """
    if path is None:
        if os.environ.get("KUBERNETES_SERVICE_HOST"):
            return _in_cluster()
        if not os.path.lexists(K3S):
            raise ConfigError(f"no kubeconfig: not in a pod, and {K3S} cannot be seen", hint="name a kubeconfig")
        path = K3S
    path = path.absolute()
    seen = {str(path): stamp(str(path))}
    document = _read(path)
    os.chdir(path.parent)
    try:
        return _from_kubeconfig(document, context=context, seen=seen)
    except ConfigError as error:
        raise ConfigError(f"kubeconfig {path}: {error}", hint=error.hint) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(path.read_bytes())
    except OSError as error:
        hint = "k3s writes it for root only" if path == K3S else "check the path and its permissions"
        raise ConfigError(f"kubeconfig {path}: {(error.strerror or 'unreadable').lower()}", hint=hint) from None
    except yaml.YAMLError as error:
        # Its text quotes the file, secrets included; the line number does not.
        mark = getattr(error, "problem_mark", None)
        line = f" (line {mark.line + 1})" if mark else ""
        raise ConfigError(f"kubeconfig {path}: not YAML{line}", hint="check it with: kubectl config view") from None
    if not isinstance(document, dict):
        raise ConfigError(f"kubeconfig {path}: not a mapping", hint="check it with: kubectl config view")
    return document


def _named(document: dict[str, Any], section: str, name: Any) -> dict[str, Any]:
    """The entry `name` of clusters, contexts or users."""
    key = section[:-1]
    entries = document.get(section)
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(key) or {}, dict):
            return entry.get(key) or {}
    raise ConfigError(f"no {key} is named {name!r}", hint=f"see the list `{section}` in the file")


def _from_kubeconfig(document: dict[str, Any], *, context: str | None, seen: dict[str, Stamp | None]) -> dict[str, Any]:
    name = context or document.get("current-context")
    if not name:
        raise ConfigError("it has no current-context", hint="name a context")
    chosen = _named(document, "contexts", name)
    cluster = _named(document, "clusters", chosen.get("cluster"))
    user = _named(document, "users", chosen["user"]) if chosen.get("user") else {}
    _check(cluster, user)
    token_file = str(Path(user["tokenFile"]).absolute()) if user.get("tokenFile") else None
    for holder, key in (
        (cluster, "certificate-authority"),
        (user, "client-certificate"),
        (user, "client-key"),
        (user, "tokenFile"),
    ):
        if holder.get(key) and not holder.get(f"{key}-data"):
            file = str(Path(holder[key]).absolute())
            seen[file] = stamp(file)
    expires = None
    plugin = user.get("exec")
    if plugin:
        user, expires = _run_plugin(plugin)
    # The token file wins over a token, as for kubectl; whoever uses the login reads the file itself.
    user = {key: value for key, value in user.items() if key != "tokenFile" and not (key == "token" and token_file)}
    found = _through_library(cluster, user)
    return found | {
        "token_file": token_file,
        "expires": expires,
        "plugin": bool(plugin),
        "proxy": _proxy(cluster),
        "files": seen,
    }


def _check(cluster: dict[str, Any], user: dict[str, Any]) -> None:
    """Refuse what would be unsafe, and what the library would silently leave out."""
    server = cluster.get("server")
    if not isinstance(server, str) or not server.startswith("https://") or not urlsplit(server).hostname:
        raise ConfigError(
            "its server is not an https:// URL", hint="credentials and objects never travel in the clear: use https://"
        )
    if urlsplit(server).username or urlsplit(server).query:
        raise ConfigError("its server URL holds a user or a query", hint="only https://HOST[:PORT][/PATH]")
    if any(user.get(key) for key in ("as", "as-uid", "as-groups", "as-user-extra")):
        raise ConfigError("it impersonates another user (`as`)", hint="give the agent a user of its own")
    provider = user.get("auth-provider")
    if provider and (not isinstance(provider, dict) or provider.get("name") not in ("oidc", "gcp")):
        raise ConfigError("its auth-provider is unknown (only oidc, gcp)", hint="use an exec plug-in")


def _run_plugin(plugin: Any) -> tuple[dict[str, Any], float | None]:
    """What an exec plug-in answered, as a kubeconfig's user, and until when that holds (Unix time)."""
    from kubernetes.aio.config.config_exception import ConfigException
    from kubernetes.aio.config.exec_provider import ExecProvider
    from kubernetes.aio.config.kube_config import ConfigNode

    if not isinstance(plugin, dict) or not isinstance(plugin.get("command"), str):
        raise ConfigError("its exec plug-in has no command", hint="check the user's `exec`")
    command, hint = plugin["command"], str(plugin.get("installHint") or "run it by hand")
    try:
        status = asyncio.run(ExecProvider(ConfigNode("exec", plugin)).run())
        token, certificate, key = (status.get(k) for k in ("token", "clientCertificateData", "clientKeyData"))
        until = status.get("expirationTimestamp")
        expires = datetime.fromisoformat(until.replace("Z", "+00:00")).timestamp() if until else None
    except OSError as error:
        raise ConfigError(f"exec plug-in {command!r}: {(error.strerror or '').lower()}", hint=hint) from None
    except ConfigException as error:
        # It ends with what the plug-in wrote to stderr, which is what an operator needs, unless it is a token.
        said = _TOKEN_LIKE.sub("…", str(error).removeprefix("exec: "))[:300]
        raise ConfigError(f"exec plug-in {command!r}: {said}", hint=hint) from None
    except (TypeError, ValueError, AttributeError):
        raise ConfigError(f"exec plug-in {command!r}: its answer is no ExecCredential", hint=hint) from None
    if not token and not (certificate and key):
        raise ConfigError(f"exec plug-in {command!r}: neither a token nor a certificate with its key", hint=hint)
    made: dict[str, Any] = {}
    if token:
        made["token"] = token
    if certificate and key:
        made["client-certificate-data"] = base64.b64encode(certificate.encode()).decode()
        made["client-key-data"] = base64.b64encode(key.encode()).decode()
    return made, expires


def _through_library(cluster: dict[str, Any], user: dict[str, Any]) -> dict[str, Any]:
    from kubernetes.aio.client import Configuration
    from kubernetes.aio.config import ConfigException, load_kube_config_from_dict

    # One cluster and one user under names of ours: the library's own look-up by name adds nothing to _named().
    one = {
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
        "clusters": [{"name": "one", "cluster": cluster}],
        "users": [{"name": "one", "user": user}],
    }
    configuration = Configuration()
    with tempfile.TemporaryDirectory(prefix="crsyncer-") as directory:
        try:
            asyncio.run(
                load_kube_config_from_dict(
                    one, context="one", client_configuration=configuration, temp_file_path=directory
                )
            )
            ca, certificate, key = (
                Path(file).read_text() if file else None
                for file in (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
            )
        except ConfigException as error:
            raise ConfigError(str(error).replace("kube-config/", ""), hint="check the file") from None
        except OSError as error:
            raise ConfigError(f"{error.filename}: {(error.strerror or '').lower()}", hint="check the file") from None
        except binascii.Error:
            raise ConfigError("one of its *-data fields is not base64", hint="encode it anew") from None
        except Exception as error:  # a provider's failure may carry its secrets: name its type only
            raise ConfigError(f"the login cannot be made ({type(error).__name__})", hint="log in anew") from None
    if bool(certificate) != bool(key):
        raise ConfigError("client certificate and client key are not both there", hint="give both or none")
    token = configuration.api_key.get("BearerToken")
    return {
        "server": configuration.host,
        "authorization": token.strip() if token else None,
        "ca": ca,
        "certificate": certificate,
        "key": key,
        "verify": bool(configuration.verify_ssl),
        "server_name": configuration.tls_server_name,
    }


def _in_cluster() -> dict[str, Any]:
    from kubernetes.aio.client import Configuration
    from kubernetes.aio.config import ConfigException, incluster_config

    files = (incluster_config.SERVICE_TOKEN_FILENAME, incluster_config.SERVICE_CERT_FILENAME)
    seen = {file: stamp(file) for file in files}
    configuration = Configuration()
    try:
        incluster_config.InClusterConfigLoader(*files).load_and_set(configuration)
        ca = Path(configuration.ssl_ca_cert).read_text()
    except (ConfigException, OSError) as error:
        hint = "mount the service account's token (automountServiceAccountToken) or name a kubeconfig"
        raise ConfigError(f"in-cluster account: {error}", hint=hint) from None
    return {
        "server": configuration.host,
        "authorization": None,
        "ca": ca,
        "certificate": None,
        "key": None,
        "verify": True,
        "server_name": None,
        "token_file": files[0],
        "expires": None,
        "plugin": False,
        "proxy": None,
        "files": seen,
    }


def _proxy(cluster: dict[str, Any]) -> str | None:
    """The proxy that kubectl would use: the file's, else the environment's, and never one for this machine itself."""
    proxy = cluster.get("proxy-url")
    if not proxy:
        host = urlsplit(cluster["server"]).hostname or ""
        try:
            local = ipaddress.ip_address(host).is_loopback
        except ValueError:
            local = host == "localhost"
        if local or urllib.request.proxy_bypass(host):
            return None
        proxy = urllib.request.getproxies().get("https")
    if proxy and urlsplit(proxy).scheme not in ("http", "https"):
        raise ConfigError("its proxy is neither http:// nor https://", hint="SOCKS proxies are not supported")
    return proxy or None

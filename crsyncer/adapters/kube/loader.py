"""Asks a kubeconfig's exec plug-in or token provider, through the Kubernetes library, in a process of its own.

Of its own, because the library costs the process that imports it 21 MiB for good (0.4 s, generated clients, two HTTP
stacks), keeps client keys in temporary files, and runs things that may hang. All of that ends with this process.
"""

import asyncio
import json
import os
import re
import signal
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from crsyncer.errors import ConfigError

_COMMAND = f"from {__name__} import main; main()"
_TIMEOUT = 60.0
_WHO = "its exec plug-in or auth-provider"
_TOKEN_LIKE = re.compile(r"\S{40,}")


async def ask_loader(user: str, *, directory: Path) -> dict[str, Any]:
    """What `main` prints for a kubeconfig's user (YAML); raises ConfigError.

    The process has a session of its own, so that a hanging plug-in is ended together with it.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-c", _COMMAND),
            cwd=directory,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        message = f"{_WHO} could not be asked ({(error.strerror or '').lower()})"
        raise ConfigError(message, hint="raise the limits on tasks (TasksMax), memory and open files") from None
    try:
        async with asyncio.timeout(_TIMEOUT):
            output, _ = await process.communicate(user.encode())
    except TimeoutError:
        raise ConfigError(f"{_WHO} gave nothing within {_TIMEOUT:g} s", hint="run it by hand") from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    try:
        answer: dict[str, Any] = json.loads(output)
    except ValueError:
        message = f"{_WHO} could not be asked (exit {process.returncode})"
        raise ConfigError(message, hint="does kubectl work with this kubeconfig?") from None
    if "error" in answer:
        raise ConfigError(answer["error"], hint=answer["hint"])
    return answer


def main() -> None:
    """Read a kubeconfig's user from stdin, print {authorization, certificate, key, expires} or {error, hint}."""
    # The agent blocks the signals that stop it, and its children inherit that.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    user = yaml.safe_load(sys.stdin)
    try:
        answer = ask_plugin(user["exec"]) if "exec" in user else ask_provider(user["auth-provider"])
    except ConfigError as error:
        answer = {"error": str(error), "hint": error.hint}
    sys.stdout.write(json.dumps(answer))


def ask_plugin(plugin: dict[str, Any]) -> dict[str, Any]:
    """The credentials that an exec plug-in answers; `expires` is Unix time. Raises ConfigError."""
    from kubernetes.aio.config import ConfigException
    from kubernetes.aio.config.exec_provider import ExecProvider
    from kubernetes.aio.config.kube_config import ConfigNode

    name, hint = f"exec plug-in {plugin['command']!r}", str(plugin.get("installHint") or "run it by hand")
    try:
        status = asyncio.run(ExecProvider(ConfigNode("exec", plugin)).run())
        token, certificate, key = (status.get(k) or "" for k in ("token", "clientCertificateData", "clientKeyData"))
        until = status.get("expirationTimestamp")
        expires = datetime.fromisoformat(until).timestamp() if until else None
    except OSError as error:
        raise ConfigError(f"{name}: {(error.strerror or 'cannot be run').lower()}", hint=hint) from None
    except ConfigException as error:
        # It ends with the plug-in's stderr, which is what an operator needs, unless a token is in it.
        said = _TOKEN_LIKE.sub("…", str(error).removeprefix("exec: "))[:300]
        raise ConfigError(f"{name}: {said}", hint=hint) from None
    except (TypeError, ValueError, AttributeError):
        raise ConfigError(f"{name}: its answer is no ExecCredential", hint=hint) from None
    if not token and not (certificate and key):
        raise ConfigError(f"{name}: it gave neither a token nor a certificate with its key", hint=hint)
    return {
        "authorization": f"Bearer {token}" if token else None,
        "certificate": certificate,
        "key": key,
        "expires": expires,
    }


def ask_provider(provider: dict[str, Any]) -> dict[str, Any]:
    """The token of an auth-provider, refreshed where it has expired. Raises ConfigError."""
    from kubernetes.aio.client import Configuration
    from kubernetes.aio.config import load_kube_config_from_dict

    configuration = Configuration()
    document = {
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://unused"}}],
        "users": [{"name": "c", "user": {"auth-provider": provider}}],
    }
    try:
        asyncio.run(load_kube_config_from_dict(document, context="c", client_configuration=configuration))
        authorization = configuration.api_key["BearerToken"]
    except Exception as error:
        # Its text may quote the answer of the token's issuer: only the type is safe to show.
        message = f"auth-provider {provider['name']!r} gave no token ({type(error).__name__})"
        raise ConfigError(message, hint="log in anew") from None
    return {"authorization": authorization, "certificate": "", "key": "", "expires": None}

"""Gathers what HAProxy's configuration is made of: logins, keys, certificate and Robots; all of it, or an error."""

import asyncio
import math
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from crsyncer.adapters.config import DoorSettings
from crsyncer.adapters.files import read
from crsyncer.adapters.kube import Exchange, KubeCluster
from crsyncer.adapters.kube.certificates import spans
from crsyncer.core.content.annotations import ROOT
from crsyncer.core.model import Json
from crsyncer.core.reports.text import rfc3339
from crsyncer.core.requests.calls import Call
from crsyncer.door.domain.door_values import FrontDoor, Shard, SigningKey
from crsyncer.door.domain.signing_keys import JWKS_PATH, differing_keys, keys_of, merged_keys
from crsyncer.door.shard_logins import shard_of
from crsyncer.errors import ConfigError, Never, NotServed, SyncError

_ACCEPT = "application/jwk-set+json, application/json"
_JWKS = Call("get", "GET", JWKS_PATH, accept=_ACCEPT, timeout=10.0)
_CERTIFICATE = "allowed: a PEM file with the door's certificate, those of its issuers and its key"


@asynccontextmanager
async def shard_clusters(
    settings: DoorSettings, exchanged: Callable[[str, str, int | None, int, int], None] | None = None
) -> AsyncIterator[Mapping[str, KubeCluster]]:
    """A client of each shard, by its name, the root's first. Raises ConfigError.

    `exchanged` is told of each exchange: the shard, then what `Exchange` has.
    """

    def observe(name: str, each: Exchange) -> None:
        if exchanged is not None:
            exchanged(name, each.verb, each.code, each.bytes_up, each.bytes_down)

    async with AsyncExitStack() as stack:
        found: dict[str, KubeCluster] = {}
        kubeconfigs = [(ROOT, settings.root.cloud_kubeconfig, settings.root.cloud_context)]
        for name, path, context in [*kubeconfigs, *((name, path, "") for name, path in settings.shards)]:
            try:
                insecure = settings.root.insecure_skip_tls_verify
                found[name] = KubeCluster(
                    path, context, insecure=insecure, name="crsyncer-door", observe=partial(observe, name)
                )
            except ConfigError as error:
                raise ConfigError(f"shard {name}: {error}", hint=error.hint) from None
            stack.push_async_callback(found[name].close)
        yield found


async def gather_door(settings: DoorSettings, clusters: Mapping[str, KubeCluster]) -> FrontDoor:
    """What the configuration is made of. Raises SyncError unless all shards answer and agree, and ConfigError."""
    certificate = read_certificate(settings.certificate) if settings.certificate is not None else ""
    shards = shards_of(clusters)  # what cannot be used is told before anybody is asked
    answers = await asyncio.gather(*(jwks(name, cluster) for name, cluster in clusters.items()))
    found = dict(zip(clusters, answers, strict=True))
    differing = differing_keys(found)
    for error in differing.values():
        raise error
    return front_door(settings, shards, certificate=certificate, keys=merged_keys(found, differing))


def front_door(
    settings: DoorSettings, shards: tuple[Shard, ...], *, certificate: str, keys: tuple[SigningKey, ...]
) -> FrontDoor:
    """What the configuration is made of, of what was gathered."""
    return FrontDoor(str(settings.directory), settings.bind, certificate, shards, keys, settings.exporter)


def shards_of(clusters: Mapping[str, KubeCluster]) -> tuple[Shard, ...]:
    """The shards as HAProxy is told of them. Raises ConfigError."""
    return tuple(shard_of(name, cluster.credentials.login) for name, cluster in clusters.items())


def read_certificate(path: Path) -> str:
    """The door's certificate with its key. Raises ConfigError where HAProxy or robots would refuse it."""
    try:
        text = read(path)
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(path, password=lambda: "")
    except ConfigError as error:
        raise ConfigError(f"--certificate: {error}; {_CERTIFICATE}") from None
    except (ssl.SSLError, OSError, ValueError) as error:
        matches = "key values mismatch" not in str(error).lower()
        why = "is no PEM certificate with its key" if matches else "has a key that is not its certificate's"
        raise ConfigError(f"--certificate: {path} {why}; {_CERTIFICATE}") from None
    begins, ends = next(iter(spans(text)), (None, None))
    if ends is not None and ends <= time.time():
        raise ConfigError(f"--certificate: {path} expired at {rfc3339(ends)}; {_CERTIFICATE}")
    if begins is not None and begins > time.time():
        raise ConfigError(f"--certificate: {path} is not valid before {rfc3339(begins)}; {_CERTIFICATE}")
    return text


def expires_at(certificate: str) -> float:
    """When a PEM text's first certificate with a date expires: Unix time; infinity: not known."""
    return next((ends for _, ends in spans(certificate) if ends is not None), math.inf)


async def jwks(name: str, cluster: KubeCluster) -> Json:
    """The keys of a shard, as it publishes them. Raises SyncError, which names the shard, also where none can be used.

    What does not heal by itself is NotTrusted, NotAllowed or Never.
    """
    try:
        reply = await cluster.request(_JWKS)
        reply.happened()
    except NotServed:
        raise Never(f"shard {name} has no {JWKS_PATH}", hint="is there an API server at its address?") from None
    except SyncError as error:
        error.args = (f"shard {name} gives no keys: {error}",)
        raise
    if not keys_of(reply.body):
        raise Never(
            f"shard {name} has no RSA key at {JWKS_PATH}",
            hint="the door verifies RS256: its API server needs an RSA key as --service-account-signing-key-file",
        )
    return reply.body

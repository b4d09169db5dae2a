"""Looks at a door once, for commands: HAProxy, the Robots, and what `door run` says of itself."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import aiohttp

from crsyncer.adapters.config import DoorSettings
from crsyncer.adapters.kube import KubeCluster
from crsyncer.core.content.annotations import ROOT
from crsyncer.core.model import Json
from crsyncer.door.domain.door_health import Level, Reason, reason_of, reasons
from crsyncer.door.domain.door_report import door_status
from crsyncer.door.domain.haproxy_answers import Stream, Worker
from crsyncer.door.domain.robots_map import Routes, read_map
from crsyncer.door.door_files import MAP, read_text
from crsyncer.door.gather_door import shard_clusters
from crsyncer.door.master_socket import MasterSocket
from crsyncer.door.robots import robot_labels
from crsyncer.errors import SyncError, Unsure

_SECONDS = 5.0


@dataclass(slots=True)
class HAProxySeen:
    """HAProxy as it answers now; `trouble`: why it does not."""

    workers: tuple[Worker, ...] = ()
    up: dict[str, bool] = field(default_factory=dict)
    streams: list[Stream] | None = None
    routes: Routes | None = None
    trouble: SyncError | None = None


async def look_at_haproxy(settings: DoorSettings) -> HAProxySeen:
    """HAProxy as it answers now. Never raises."""
    socket, seen = MasterSocket(settings.socket, settings.directory / MAP), HAProxySeen()
    try:
        seen.workers = await socket.workers()
        newest = seen.workers[0].pid
        if not await socket.is_ours(newest):
            raise Unsure(f"the HAProxy at {settings.socket} does not use {settings.directory / MAP}")
        seen.up = {name: server.is_up for name, server in (await socket.servers(newest)).items()}
        seen.routes = await socket.map_entries(newest)
        seen.streams = [each for worker in seen.workers for each in await socket.streams(worker.pid)]
    except SyncError as error:
        seen.trouble = error
    return seen


async def told_by_run(listen: tuple[str, int]) -> list[Reason]:
    """What `door run` knows to be wrong. Raises Unsure where it does not answer."""
    content = await ask_run(listen, "/status")
    try:
        return [reason_of(each) for each in content["reasons"]]
    except (ValueError, KeyError, TypeError):
        raise _silent(listen) from None


async def ask_run(listen: tuple[str, int], path: str) -> Json:
    """What `door run` answers at a path. Raises Unsure where it does not, or says why it cannot."""
    host, port = listen
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}{path}"
    try:
        timeout = aiohttp.ClientTimeout(total=_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as reply:
            text = await reply.text()
            if reply.status != 200:
                raise Unsure(f"crsyncer door run at {host}:{port} answers {reply.status}: {text.strip()[:200]}")
            content = json.loads(text)
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
        raise _silent(listen) from None
    if not isinstance(content, dict):
        raise _silent(listen)
    return content


def _silent(listen: tuple[str, int]) -> Unsure:
    return Unsure(f"crsyncer door run does not answer at {listen[0]}:{listen[1]}", hint="start it; is --listen right?")


async def read_status(settings: DoorSettings, robot: str) -> Json:
    """The document of `door status`. Raises ConfigError."""
    async with shard_clusters(settings) as clusters:
        seen, labels = await look_at_haproxy(settings), dict[str, str]()
        away: SyncError | None = None
        try:
            labels = await _labels(settings, clusters)
        except SyncError as error:
            away = error
        found = reasons(
            labels=labels, shards=tuple(clusters), up=seen.up, silent=(), haproxy=seen.trouble, unwritten=None,
            root=away, bad=(), stale=None,
        )  # fmt: skip
        if settings.listen is not None:
            try:
                found += await told_by_run(settings.listen)
            except Unsure as error:
                found.append(Reason("NotKept", Level.STOPPED, str(error), error.hint))
        once = {(each.code, each.message): each for each in found}
        routes = seen.routes
        if routes is None:
            routes = read_map(read_text(settings.directory / MAP) or "")
        return door_status(
            {name: cluster.server for name, cluster in clusters.items()},
            routes,
            sorted(once.values(), key=lambda each: list(Level).index(each.level)),
            workers=seen.workers,
            up=seen.up,
            streams=seen.streams,
            robot=robot,
        )


async def _labels(settings: DoorSettings, clusters: Mapping[str, KubeCluster]) -> dict[str, str]:
    root = settings.root
    return await robot_labels(clusters[ROOT].request, root.robots, root.robots_namespace)

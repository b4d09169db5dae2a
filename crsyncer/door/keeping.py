"""Keeps HAProxy's configuration as the shards' keys, kubeconfigs and the door's certificate want it."""

import asyncio
import logging
import math
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from crsyncer.adapters.config import DoorSettings
from crsyncer.adapters.kube import KubeCluster
from crsyncer.core.model import Json
from crsyncer.door.domain.door_values import FrontDoor
from crsyncer.door.domain.haproxy_template import CERTIFICATE, CONFIGURATION, keys_in, shard_in
from crsyncer.door.domain.robots_map import map_text
from crsyncer.door.domain.signing_keys import differing_keys, merged_keys
from crsyncer.door.domain.upkeep_plan import KeyTimer, has_moved
from crsyncer.door.door_files import is_new, last_files, put_files, read_text, try_configuration, written
from crsyncer.door.gather_door import expires_at, front_door, jwks, read_certificate, shards_of
from crsyncer.door.haproxy_program import check_configuration
from crsyncer.door.master_socket import MasterSocket
from crsyncer.door.upkeep import Upkeep
from crsyncer.errors import ConfigError, SyncError, Unsure

log = logging.getLogger(__name__)

_POLL_SECONDS = 1.0
_REFUSED_SECONDS = 60.0
_LOOK_UP_SECONDS = 60.0
"""How often the name of a shard that is down is looked up."""


@dataclass(slots=True)
class Keeping:
    """Reads keys, makes the configuration, and has HAProxy load it where it is another one."""

    settings: DoorSettings
    clusters: Mapping[str, KubeCluster]
    haproxy: MasterSocket
    upkeep: Upkeep
    timer: KeyTimer = field(default_factory=KeyTimer)
    trouble: SyncError | None = None
    """Why the configuration is not the one that it should be."""
    bad_file: ConfigError | None = None
    """The file that cannot be used; the last good one is."""
    silent: dict[str, SyncError] = field(default_factory=dict)
    """The shards that gave no keys."""
    differing: dict[str, SyncError] = field(default_factory=dict)
    """The names by which two shards mean different keys: what each meant before stays, and the others go on."""
    _expires_at: float = math.inf
    """When the certificate that was read expires: Unix time."""
    _answers: dict[str, Json] = field(default_factory=dict)
    _written: dict[str, float] | None = None
    """When HAProxy's files were written, when they were last found to be what they should be; None: not yet."""
    _awaited: str = ""
    """Why HAProxy could not load the configuration yet, as it was logged last."""
    refusal: SyncError | None = None
    """Why HAProxy goes on with the last configuration."""
    _reload_due: bool = False
    _refused_at: float = -math.inf
    _looked_up_at: float = -math.inf

    async def run(self) -> None:
        """Keep it so, for ever. What is loaded at the start is what the files say."""
        loop = asyncio.get_running_loop()
        while True:
            self.timer.refused(self.upkeep.seen.refused)
            present = written(self.settings.directory)
            if self._written is not None and present != self._written:
                self.timer.again()  # HAProxy may start again at any time
            if time.time() >= self._expires_at:
                self.timer.at_once()  # to tell it
            if self.timer.due(loop.time()):
                self.timer.read(loop.time())
                await self._attempt()
            elif not self._reload_due and (self._is_outdated(present) or await self._has_moved()):
                self._reload_due = True
                self.timer.at_once()  # what somebody has done to the files is put right before
            else:
                await self._reload()
            await asyncio.sleep(_POLL_SECONDS)

    def _is_outdated(self, present: Mapping[str, float]) -> bool:
        """Whether HAProxy runs with older files than there are: `door config` has written them since it started."""
        return max(present.values(), default=0.0) > self.upkeep.seen.loaded_at

    async def _has_moved(self) -> bool:
        """Whether a shard is down, and its name means another address than when HAProxy started."""
        loop = asyncio.get_running_loop()
        if all(self.upkeep.seen.shards_up.values()) or loop.time() < self._looked_up_at + _LOOK_UP_SECONDS:
            return False
        self._looked_up_at = loop.time()
        for shard in shards_of(self.clusters):
            try:
                found = await loop.getaddrinfo(shard.host, shard.port, type=socket.SOCK_STREAM)
            except OSError:
                continue
            if has_moved(self.upkeep.seen.servers.get(shard.name), {str(each[4][0]) for each in found}):
                log.info("shard %s is down, and %s has another address now", shard.name, shard.host)
                return True
        return False

    async def _attempt(self) -> None:
        try:
            door = await self._gather()
            present = written(self.settings.directory)
            if is_new(door):
                await try_configuration(door, map_text(self.upkeep.wanted))
                if put_files(door):
                    self._reload_due, self._refused_at = True, -math.inf
                log.info("HAProxy's configuration is written: %d keys", len(door.keys))
                self.timer.again()  # to look whether somebody has written at the same time
            else:
                self._written = present
            self._note(None)
        except SyncError as error:
            self._note(error)
        await self._reload()
        if self.silent or self.differing or self.trouble is not None:
            self.timer.again()

    async def _gather(self) -> FrontDoor:
        """What the configuration is made of now: of a shard that is silent, and a bad certificate, the last good.

        Where a shard was silent from the start nobody knows which keys are its own: all that are in use stay.
        """
        names = list(self.clusters)
        found = await asyncio.gather(*(jwks(name, self.clusters[name]) for name in names), return_exceptions=True)
        before, self.silent = self.silent, {}
        for name, answer in zip(names, found, strict=True):
            if isinstance(answer, SyncError):
                self.silent[name] = answer
                if str(answer) != str(before.get(name, "")):
                    log.warning("%s: what is known of it stays", answer)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                self._answers[name] = answer
        certificate = self._certificate()
        known = {name: self._answers[name] for name in names if name in self._answers}
        former, self.differing = self.differing.keys(), differing_keys(known)
        for kid in self.differing.keys() - former:
            log.error("%s: that in use stays", self.differing[kid])
        files = last_files(self.settings.directory) if self.silent or self.differing else {}
        last_keys, is_unknown = keys_in(files), bool(self.silent.keys() - known.keys())
        in_use = {kid: key for kid, key in last_keys.items() if is_unknown or kid in self.differing}
        keys = merged_keys(known, self.differing, in_use=in_use)
        if not keys:
            raise next(iter([*self.silent.values(), *self.differing.values()]))
        # Another address or authority in a kubeconfig is used once a server has answered there.
        last = {name: shard for name in self.silent if (shard := shard_in(files, name)) is not None}
        shards = tuple(last.get(each.name, each) for each in shards_of(self.clusters))
        return front_door(self.settings, shards, certificate=certificate, keys=keys)

    def _certificate(self) -> str:
        self.bad_file, self._expires_at = None, math.inf
        if self.settings.certificate is None:
            return ""
        try:
            text = read_certificate(self.settings.certificate)
        except ConfigError as error:
            last = read_text(self.settings.directory / CERTIFICATE)
            if last is None:
                raise
            self.bad_file = error
            log.warning("%s: the last certificate stays", error)
            return last
        self._expires_at = expires_at(text)
        return text

    async def _reload(self) -> None:
        """Have HAProxy load what is written, where that is due; what it refuses is tried again after a while."""
        now = asyncio.get_running_loop().time()
        if not self._reload_due or now < self._refused_at + _REFUSED_SECONDS:
            return
        try:
            await self.haproxy.workers()  # raises where it is away
            await check_configuration(self.settings.directory / CONFIGURATION)
            await self.haproxy.reload()
        except Unsure as error:
            if str(error) != self._awaited:
                self._awaited = str(error)
                log.info("HAProxy loads the new configuration when it is there: %s", error)
        except SyncError as error:
            self.refusal, self._refused_at = error, now
            self.timer.again()  # a file that is not what it should be is put right
            log.warning("%s", error)
        else:
            self.refusal, self._reload_due, self.upkeep.seen.loaded_at = None, False, math.inf
            self._awaited = ""
            log.info("HAProxy has loaded its new configuration")

    def _note(self, error: SyncError | None) -> None:
        if error is not None and str(error) != str(self.trouble or ""):
            log.error("HAProxy's configuration stays as it is: %s", error)
        self.trouble = error

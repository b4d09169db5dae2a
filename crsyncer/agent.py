"""The robot agent, put together: builds the adapters and starts the engine. The one file that imports every room."""

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from crsyncer.adapters import control, reload, web
from crsyncer.adapters.agent_identity import distinct_name, present_boot
from crsyncer.adapters.config import Settings
from crsyncer.adapters.ending import Ending
from crsyncer.adapters.files import read_boot_id
from crsyncer.adapters.kube import Exchange, KubeCluster
from crsyncer.adapters.metrics import Metrics
from crsyncer.adapters.store.statedir import Lock
from crsyncer.adapters.store.store import SqliteStore
from crsyncer.adapters.systemd import ServiceManager
from crsyncer.agent_ports import SecretStore
from crsyncer.console.operators.control_commands import ControlCommands, changes
from crsyncer.console.screens.gather import gather
from crsyncer.console.screens.reasons import CODES
from crsyncer.console.screens.report import SAVED_STATUS_KEY
from crsyncer.console.screens.screen import headline
from crsyncer.core.model import Json, Side
from crsyncer.core.watching.progress import Progress, stuck
from crsyncer.engine.engine import Engine
from crsyncer.engine.reporting.event_publisher import EventPublisher
from crsyncer.engine.reporting.liveness import progress
from crsyncer.engine.reporting.robot_reporter import RobotReporter
from crsyncer.errors import ConfigError, first_error
from crsyncer.runtime.connection import ConnectionState

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from crsyncer.core.content.mutation import Expressions

_SAVE_SECONDS = 0.2
_STOP_SECONDS = 5.0
_PULSE_SECONDS = 1.0
_STATUS_BEATS = 60
_STUCK_SECONDS = 30.0


class Agent:
    """One agent. Settings that change rebuild everything but the store; a bad edit changes nothing."""

    def __init__(
        self, settings: Settings, load: Callable[[], Settings], *, set_up_logs: Callable[[str, str], None]
    ) -> None:
        """`load` reads the settings again, `set_up_logs` takes format and level."""
        self._settings = settings
        self._load = load
        self._set_up_logs = set_up_logs
        self._since = time.time()
        self._metrics = Metrics(CODES)
        self._systemd = ServiceManager(os.environ)
        self._config_error: str | None = None
        self._store_trouble: str | None = None
        self._store: SqliteStore
        self._engine: Engine | None = None
        self._clusters: dict[Side, KubeCluster] = {}
        self._boot_id = ""
        self._name = "crsyncer"
        self._changed = asyncio.Event()
        self._wanted = settings
        """The settings for which everything is to be built anew, if they are others than those in force."""
        self._rebuild = asyncio.Event()
        self._progress: tuple[Progress, ...] = ()
        """What must not stand still, as the event loop knew it at its last beat; read by another thread."""

    async def run(self) -> int:
        """Serve until SIGTERM or SIGINT; the exit code. Raises ConfigError, Locked or StoreError if it cannot start."""
        ending = Ending()
        await self._try(self._settings)  # before anything is touched
        Lock(self._settings.state_dir).peek()  # or the other agent's port would be named instead of the agent
        if self._settings.listen is not None:
            await web.check(self._settings.listen)
        self._store = await SqliteStore.open(
            self._settings.state_dir, on_trouble=self._trouble, on_commit=self._metrics.commit
        )
        self._boot_id = read_boot_id(self._settings.boot_id_file)
        self._name = distinct_name(self._store, self._boot_id)
        for note in self._store.notes:
            log.warning("store: %s", note)
        main = asyncio.create_task(self._serve())
        stopped = asyncio.create_task(ending.asked.wait())
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._reread)
        try:
            await asyncio.wait([main, stopped], return_when=asyncio.FIRST_COMPLETED)
            if ending.asked.is_set():
                self._save()  # while there is still a status
                self._systemd.notify(STOPPING="1")
            else:
                ending.failed()
            main.cancel()
            await asyncio.wait([main], timeout=_STOP_SECONDS)
            if not main.cancelled() and main.done() and (error := main.exception()) is not None:
                raise first_error(error)
            return 0
        finally:
            await self._store.close()
            log.info("stopped")

    async def _serve(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch_settings())
            tasks.create_task(self._keep_built())

    async def _keep_built(self) -> None:
        """Build everything for the settings of the moment, again whenever they change."""
        proven: Settings | None = None
        while True:
            async with contextlib.AsyncExitStack() as stack:
                try:
                    engine = await self._build(stack)
                except ConfigError as error:
                    if proven is None:
                        raise
                    self._refuse(str(error))
                    self._settings, proven = proven, None
                    continue
                proven = self._settings
                self._systemd.notify(READY="1")  # it serves; systemd must not wait for an API server
                await self._until_rebuilt(engine)

    async def _build(self, stack: contextlib.AsyncExitStack) -> Engine:
        self._clusters = {side: self._connect(side, stack, self._settings) for side in Side}
        engine = self._engine = self._assemble(self._clusters)
        answer = partial(self._answer, engine, ControlCommands(engine.kinds, engine.context))
        await stack.enter_async_context(
            control.serve(
                self._settings.state_dir,
                answer,
                runtime_dir=self._settings.runtime_dir,
                changes=changes,
                group=self._settings.control_group,
            )
        )
        if self._settings.listen is not None:
            await stack.enter_async_context(
                web.serve(
                    self._settings.listen,
                    live=self._live,
                    ready=partial(self._ready, engine),
                    metrics=partial(self._scrape, engine),
                )
            )
        return engine

    async def _until_rebuilt(self, engine: Engine) -> None:
        """Run the engine until everything is to be built anew. Raises the errors of its tasks as a group."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(engine.run())
                tasks.create_task(EventPublisher(engine, instance=self._name).run())
                tasks.create_task(self._reporter(engine).run())
                tasks.create_task(self._keep_saved())
                tasks.create_task(self._beat(engine))
                tasks.create_task(self._end_for_rebuild())
        except* _Rebuild:
            pass  # a raise here would be wrapped into a group by CPython before 3.11.4 (gh-103590)

    async def _try(self, settings: Settings) -> None:
        """Raise the ConfigError for which a login that these settings name cannot be used."""
        async with contextlib.AsyncExitStack() as trial:
            for side in Side:
                self._connect(side, trial, settings)

    def _connect(self, side: Side, stack: contextlib.AsyncExitStack, settings: Settings) -> KubeCluster:
        path, context = settings.robot_kubeconfig, settings.robot_context
        if side is Side.CLOUD:
            path, context = settings.cloud_kubeconfig, settings.cloud_context

        def observe(exchange: Exchange) -> None:
            self._metrics.exchange(side, exchange.verb, exchange.code, exchange.bytes_up, exchange.bytes_down)

        try:
            cluster = KubeCluster(
                path, context, insecure=settings.insecure_skip_tls_verify, name=self._name, observe=observe
            )
        except ConfigError as error:
            raise ConfigError(f"{side}.kubeconfig: {error}", hint=error.hint) from None
        stack.push_async_callback(cluster.close)
        return cluster

    def _assemble(self, clusters: dict[Side, KubeCluster]) -> Engine:
        return Engine(
            clusters,
            store=self._store,
            observer=self._metrics,
            robot=self._settings.robot_name,
            namespaces=self._settings.synced_namespaces,
            watch_timeout=self._settings.watch_timeout,
            audit_interval=self._settings.audit_interval,
            clock=time.time,
            report_changed=self._changed.set,
            expressions=_expressions,
            trust=self._settings.trust,
            vault=partial(_vault, self._store),
            digest_key=partial(_digest_key, self._settings.state_dir),
            boot=present_boot(self._store, self._boot_id),
            name=self._name,
            require_confinement=self._settings.require_confinement,
            report_namespace=self._settings.report_namespace,
        )

    def _reporter(self, engine: Engine) -> RobotReporter:
        return RobotReporter(
            engine,
            robot=self._settings.robot_name,
            namespaces=self._settings.synced_namespaces,
            report_namespace=self._settings.report_namespace,
            health=lambda: str(self._document(engine)["health"]),
        )

    # Settings

    async def _watch_settings(self) -> None:
        async for outcome in reload.reloads(self._load, lambda: self._settings.files):
            self._take(outcome)

    def _reread(self) -> None:
        log.info("SIGHUP: configuration and credentials are read again")
        self._systemd.notify(RELOADING="1")
        self._take(reload.attempt(self._load))
        self._systemd.notify(READY="1")

    def _take(self, outcome: Settings | ConfigError) -> None:
        """Go on with new settings, or with the old ones and log why. What was read before does not count any more."""
        self._wanted = self._settings
        if isinstance(outcome, ConfigError):
            self._refuse(str(outcome))
        elif outcome.state_dir != self._settings.state_dir:
            self._refuse("stateDir cannot change while the agent runs; restart it")
        elif _engine(outcome) != _engine(self._settings):
            self._wanted = outcome
            self._rebuild.set()
            return
        else:
            self._adopt(outcome)
        if self._engine is not None:
            self._engine.refresh_credentials()
        self._changed.set()

    def _adopt(self, settings: Settings) -> None:
        if self._config_error is not None:
            log.info("the configuration can be used again")
        self._config_error = None
        self._settings = self._wanted = settings
        self._set_up_logs(settings.log_format, settings.log_level)

    def _refuse(self, reason: str) -> None:
        self._config_error = reason
        log.error("the new configuration is not used: %s", reason)

    async def _end_for_rebuild(self) -> None:
        while True:
            await self._rebuild.wait()
            self._rebuild.clear()
            settings, trouble = self._wanted, None
            try:
                await self._try(settings)
            except ConfigError as error:
                trouble = str(error)
            if settings is not self._wanted or settings is self._settings:
                continue  # it was edited once more meanwhile
            if trouble is None:
                log.info("settings have changed: starting over with them")
                self._adopt(settings)
                raise _Rebuild
            self._refuse(trouble)
            self._changed.set()

    # What others ask

    async def _answer(self, engine: Engine, commands: ControlCommands, request: Json) -> Json:
        if request.get("command") == "status":
            return self._document(engine)
        return await commands.answer(request)

    def _document(self, engine: Engine) -> Json:
        store = self._store
        return gather(
            engine,
            robot=self._settings.robot_name,
            pid=os.getpid(),
            since=self._since,
            store={"path": str(store.path), "bytes": store.bytes, "schema": store.schema, "state": store.state},
            loop_time=asyncio.get_running_loop().time(),
            store_message=self._store_trouble,
            writes=self._metrics.done,
            config_error=self._config_error,
            tls_unverified=[side for side, cluster in self._clusters.items() if not cluster.verified],
        )

    def _live(self) -> str | None:
        return stuck(self._progress, time.monotonic())

    def _ready(self, engine: Engine) -> str | None:
        return None if engine.kinds.has_synced else "the robot's CRDs are not known yet"

    def _scrape(self, engine: Engine) -> bytes:
        return self._metrics.render(self._document(engine))

    # Housekeeping

    async def _beat(self, engine: Engine) -> None:
        shown: list[ConnectionState] = []
        for beat in count():
            self._progress = (Progress("the event loop", time.monotonic(), _STUCK_SECONDS), *progress(engine))
            if self._systemd.listens and self._live() is None:  # else systemd ends this agent and starts another
                self._systemd.notify(WATCHDOG="1")
                if beat % _STATUS_BEATS == 0:  # `_save` shows what changes; this is for the durations in it
                    self._systemd.notify(STATUS=headline(self._document(engine)))
            if self._store.trouble != self._store_trouble:
                self._trouble(self._store.trouble)
            states = [connection.state for connection in engine.connections.values()]
            if states != shown:
                shown = states
                self._changed.set()
            await asyncio.sleep(_PULSE_SECONDS)

    async def _keep_saved(self) -> None:
        """Keep the last status where `crsyncer status` finds it when the agent is down."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            self._save()
            await asyncio.sleep(_SAVE_SECONDS)

    def _save(self) -> None:
        if self._engine is None:
            return
        content = self._document(self._engine)
        self._systemd.notify(STATUS=headline(content))
        if not self._engine.kinds.has_synced:  # of its kinds the run before knew more
            before = self._store.get_meta(SAVED_STATUS_KEY) or {}
            content |= {part: before[part] for part in ("kinds", "holds") if part in before}
        self._store.put_meta(SAVED_STATUS_KEY, content)

    def _trouble(self, message: str | None) -> None:
        if message is not None:
            log.error("store: %s", message)
        self._store_trouble = message
        self._changed.set()


def _expressions() -> "Expressions":
    """The languages of policies; a robot without steps never loads them (C1.1)."""
    from crsyncer.adapters.expressions import Expressions

    return Expressions()


@cache
def _vault(store: SqliteStore) -> SecretStore:
    """The store for Secrets, for as long as the process runs; a robot that syncs none never loads it (C1.1)."""
    from crsyncer.adapters.vault import Vault

    return Vault(store)


@cache
def _digest_key(directory: Path) -> bytes:
    from crsyncer.adapters.vault import digest_key

    return digest_key(directory)


class _Rebuild(Exception):
    """Not an error: the settings have changed, and everything but the store is built anew."""


def _engine(settings: Settings) -> Settings:
    """The settings that everything is built for; the others are taken over in passing."""
    return replace(settings, log_format="", log_level="", files=(), config_file=None)

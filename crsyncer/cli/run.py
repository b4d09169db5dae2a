"""`crsyncer run`: the agent, in the foreground."""

import faulthandler
import logging
import os
import signal
import sys
from functools import partial
from http import HTTPStatus
from types import FrameType
from typing import Any

import click

from crsyncer.adapters.config import Settings, load
from crsyncer.adapters.memory import import_aiohttp_without_roots, leave_no_core_file, return_freed_memory
from crsyncer.cli import logs
from crsyncer.cli.shared import settings_options
from crsyncer.core.model import Side
from crsyncer.errors import ConfigError, NotAllowed, SyncError

_PROOF_SECONDS = 10.0
"""How long a start waits for the cloud to say what the account may do."""
_log = logging.getLogger(__name__)


@click.command(params=settings_options())
def run(**flags: Any) -> int:
    """Run the agent in the foreground.

    The annotations of the robot's CRDs define what is synced. Precedence of settings: flag, environment variable,
    configuration file, default.

    SIGTERM and SIGINT stop it within 10 seconds, exit code 0. SIGHUP reloads configuration and credentials.
    """
    faulthandler.enable()  # systemd's watchdog ends a hung agent with SIGABRT: log where each thread stands
    leave_no_core_file()
    return_freed_memory()
    reload = partial(load, flags, os.environ)
    settings = reload()
    # Until the agent installs its own handlers, a stop exits and a reload does nothing.
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # Files created from here on are private: they hold statuses and specs.
    os.umask(0o077)
    # API servers accept JSON nested 10,000 levels deep. Such an object must be synced, and must not crash the agent.
    sys.setrecursionlimit(50_000)
    logs.set_up(settings.log_format, settings.log_level)

    import_aiohttp_without_roots()
    import asyncio  # heavy; `--help` and usage errors must stay fast

    from crsyncer.adapters.ending import end_out_of_memory, lacks_memory
    from crsyncer.agent import Agent

    if settings.require_confinement:
        asyncio.run(_refuse_excess(settings))
    try:
        return asyncio.run(Agent(settings, reload, set_up_logs=logs.set_up).run())
    except Exception as error:
        if lacks_memory(error):
            end_out_of_memory()
        raise


async def _refuse_excess(settings: Settings) -> None:
    """Raise ConfigError where the cloud's account may do too much; without an answer, that is found out later."""
    import asyncio

    from crsyncer.adapters.kube import KubeCluster
    from crsyncer.engine.kinds.account_check import AccountCheck

    confinement = AccountCheck(tuple, robot=settings.robot_name, namespaces=settings.synced_namespaces.on(Side.CLOUD))
    cluster = KubeCluster(settings.cloud_kubeconfig, settings.cloud_context, insecure=settings.insecure_skip_tls_verify)
    try:
        async with asyncio.timeout(_PROOF_SECONDS):
            await confinement.check(cluster.request)
    except NotAllowed as error:
        if error.status != HTTPStatus.UNAUTHORIZED:
            raise ConfigError(f"--require-confinement: {error}", hint=error.hint) from None
        _log.warning("cloud: %s: the rights of the account are checked before it is used", error)
    except (SyncError, TimeoutError):
        _log.warning("cloud: no answer: the rights of the account are checked before it is used")
    finally:
        await cluster.close()


def _stop(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(0)

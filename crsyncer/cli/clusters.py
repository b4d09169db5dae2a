"""Shared by `diff`, `doctor` and `check-access`, which read the clusters directly."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from crsyncer.adapters.config import Settings
from crsyncer.cli.status import read_status
from crsyncer.core.model import Side
from crsyncer.errors import SyncError

if TYPE_CHECKING:
    from crsyncer.adapters.kube import KubeCluster

CLUSTER_SETTINGS = (
    *("robot_name", "cloud_kubeconfig", "robot_kubeconfig", "cloud_context", "robot_context"),
    *("state_dir", "namespaces", "namespace_map", "trust", "insecure_skip_tls_verify"),
)
"""The settings of `run` that these commands take, too."""


def robot_name(settings: Settings) -> str:
    """The robot's name from the settings, else from the agent of the state directory; empty if neither has one."""
    if not settings.robot_name:
        with suppress(SyncError):
            return str(read_status(settings.state_dir)["robot"])
    return settings.robot_name


def identities(settings: Settings) -> dict[Side, str]:
    """What the agent of the state directory calls the clusters (S8.1); empty without one."""
    with suppress(SyncError):
        sides = read_status(settings.state_dir)["sides"]
        return {side: str(sides[side]["identity"]) for side in Side if sides[side]["identity"]}
    return {}


def logins(settings: Settings) -> Mapping[Side, tuple[Path | None, str]]:
    """Of each side the kubeconfig (None: the in-cluster account) and the context (empty: the current one)."""
    return {
        Side.CLOUD: (settings.cloud_kubeconfig, settings.cloud_context),
        Side.ROBOT: (settings.robot_kubeconfig, settings.robot_context),
    }


@asynccontextmanager
async def both_clusters(settings: Settings) -> AsyncIterator[Mapping[Side, "KubeCluster"]]:
    """Both API servers, of which none has been asked yet; raises ConfigError."""
    from crsyncer.adapters.kube import KubeCluster  # slow; `--help` and usage errors must stay fast

    async with AsyncExitStack() as stack:
        found = {}
        for side, login in logins(settings).items():
            found[side] = KubeCluster(*login, insecure=settings.insecure_skip_tls_verify)
            stack.push_async_callback(found[side].close)
        yield found

"""Shared by `diff`, `doctor` and `check-access`, which read the clusters directly."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from crsyncer.adapters.config import Settings
from crsyncer.cli.status import read_status
from crsyncer.core.model import Side
from crsyncer.errors import SyncError

CLUSTER_SETTINGS = (
    *("robot_name", "cloud_kubeconfig", "robot_kubeconfig", "cloud_context", "robot_context"),
    *("state_dir", "namespaces", "insecure_skip_tls_verify"),
)
"""The settings of `run` that these commands take, too."""


def robot_name(settings: Settings) -> str:
    """The robot's name from the settings, else from the agent of the state directory; empty if neither has one."""
    if not settings.robot_name:
        with suppress(SyncError):
            return str(read_status(settings.state_dir)["robot"])
    return settings.robot_name


def logins(settings: Settings) -> Mapping[Side, tuple[Path | None, str]]:
    """Of each side the kubeconfig (None: the in-cluster account) and the context (empty: the current one)."""
    return {
        Side.CLOUD: (settings.cloud_kubeconfig, settings.cloud_context),
        Side.ROBOT: (settings.robot_kubeconfig, settings.robot_context),
    }

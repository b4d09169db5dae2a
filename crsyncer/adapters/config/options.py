"""Every setting with its three names, and how its text becomes a value."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crsyncer.errors import ConfigError

K3S = "etc/rancher/k3s/k3s.yaml"
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Given:
    """A value somebody gave: the text, how an error names the place, and the folder that a relative path starts at."""

    texts: tuple[str, ...]
    place: str
    folder: Path

    @property
    def text(self) -> str:
        """The value of an option that is not repeatable."""
        return self.texts[-1]

    def refuse(self, allowed: str) -> ConfigError:
        """The one-line error for this value."""
        shown = " ".join(" ".join(self.texts).split())
        shown = "".join(c if c.isprintable() else "?" for c in shown)
        said = f'is "{shown[:80]}"' if shown else "is empty"
        return ConfigError(f"{self.place} {said}; allowed: {allowed}")


def _robot_name(given: Given) -> str:
    if not _LABEL_VALUE.fullmatch(given.text):
        raise given.refuse(
            "a label value: at most 63 letters, digits, '-', '_', '.', with a letter or digit at each end"
        )
    return given.text


def parse_path(given: Given) -> Path:
    """The absolute path that was meant; ConfigError when it is none."""
    if not given.text or "\0" in given.text:
        raise given.refuse("a path")
    return absolute(given.text, given.folder)


def absolute(text: str, folder: Path) -> Path:
    """A path as written in something that lies in `folder`."""
    return folder.absolute() / text


def _state_dir(given: Given) -> Path:
    path = parse_path(given)
    if os.path.exists(path) and not os.path.isdir(path):  # unlike Path's, these do not raise where a parent is closed
        raise given.refuse("a directory, which is created when it does not exist; there is a file of that name")
    return path


def _boot_id_file(given: Given) -> Path:
    path = parse_path(given)
    if os.path.isdir(path):
        raise given.refuse("a file; one that cannot be read only means that boots go unnoticed")
    return path


def _context(given: Given) -> str:
    if not given.text:
        raise given.refuse("the name of a context in the kubeconfig")
    return given.text


def _listen(given: Given) -> tuple[str, int] | None:
    if given.text == "off":
        return None
    host, colon, port = given.text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    well_formed = colon and host and (bracketed or ":" not in host) and not re.search(r"[\s/@\[\]]", host)
    if not (well_formed and re.fullmatch(r"[0-9]{1,5}", port) and int(port) <= 65535):
        raise given.refuse("HOST:PORT such as 127.0.0.1:9464 or [::1]:9464, or off")
    return host, int(port)


def _namespaces(given: Given) -> tuple[str, ...]:
    if wrong := [text for text in given.texts if not _NAMESPACE.fullmatch(text)]:
        raise Given((wrong[0],), given.place, given.folder).refuse(
            "names of namespaces: at most 63 lower-case letters, digits and '-', with a letter or digit at each end"
        )
    return tuple(dict.fromkeys(given.texts))


def _one_of(*names: str) -> Callable[[Given], str]:
    def parse(given: Given) -> str:
        if given.text.lower() not in names:
            raise given.refuse(", ".join(names))
        return given.text.lower()

    return parse


def _switch(given: Given) -> bool:
    if given.text.lower() not in ("true", "false"):
        raise given.refuse("true, false")
    return given.text.lower() == "true"


def _watch_timeout(given: Given) -> int:
    if not re.fullmatch(r"[0-9]{1,4}", given.text) or not 30 <= int(given.text) <= 600:
        raise given.refuse("a whole number of seconds from 30 to 600")
    return int(given.text)


def _audit_interval(given: Given) -> int:
    if not re.fullmatch(r"[0-9]{1,6}", given.text) or not 10 <= int(given.text) <= 604_800:
        raise given.refuse("a whole number of seconds from 10 to 604800, a week")
    return int(given.text)


@dataclass(frozen=True, slots=True)
class Option:
    """One setting and its three names."""

    field: str
    flag: str
    variables: tuple[str, ...]
    """Environment variables, the first that is set and not empty wins."""
    key: str
    """Dotted key in the configuration file."""
    metavar: str
    help: str
    parse: Callable[[Given], Any]
    default: str
    """What `--help` says."""
    many: bool = False
    switch: bool = False
    """Whether its flag takes no value and means true."""


OPTIONS = (
    Option(
        "robot_name", "--robot-name", ("CRSYNCER_ROBOT_NAME",), "robotName", "NAME",
        "This robot's name, as in the label cloudrobotics.com/robot-name.",
        _robot_name, "none: filtered kinds and those with spec-source robot are then misconfigured",
    ),
    Option(
        "cloud_kubeconfig", "--cloud-kubeconfig", ("CRSYNCER_CLOUD_KUBECONFIG",), "cloud.kubeconfig", "FILE",
        "How to reach the cloud's API server.", parse_path, "required",
    ),
    Option(
        "robot_kubeconfig", "--robot-kubeconfig", ("CRSYNCER_ROBOT_KUBECONFIG",), "robot.kubeconfig", "FILE",
        "How to reach the robot's API server.", parse_path, f"the in-cluster account, else /{K3S}",
    ),
    Option(
        "cloud_context", "--cloud-context", ("CRSYNCER_CLOUD_CONTEXT",), "cloud.context", "NAME",
        "Context in the cloud's kubeconfig.", _context, "the current context",
    ),
    Option(
        "robot_context", "--robot-context", ("CRSYNCER_ROBOT_CONTEXT",), "robot.context", "NAME",
        "Context in the robot's kubeconfig.", _context, "the current context",
    ),
    Option(
        "insecure_skip_tls_verify", "--insecure-skip-tls-verify", ("CRSYNCER_INSECURE_SKIP_TLS_VERIFY",),
        "insecureSkipTlsVerify", "",
        "Take a kubeconfig with insecure-skip-tls-verify: anybody may then pose as its server.",
        _switch, "false: such a kubeconfig is refused", switch=True,
    ),
    Option(
        "state_dir", "--state-dir", ("CRSYNCER_STATE_DIR", "STATE_DIRECTORY"), "stateDir", "DIR",
        "Where the agent keeps what must survive a restart.", _state_dir, "/var/lib/crsyncer",
    ),
    Option(
        "listen", "--listen", ("CRSYNCER_LISTEN",), "listen", "HOST:PORT",
        "Where to serve /livez, /readyz and /metrics; off for nowhere.", _listen, "127.0.0.1:9464",
    ),
    Option(
        "namespaces", "--namespace", ("CRSYNCER_NAMESPACES",), "namespaces", "NS",
        "Sync this namespace only; repeatable. The variable takes several, separated by commas.",
        _namespaces, "all", many=True,
    ),
    Option(
        "log_format", "--log-format", ("CRSYNCER_LOG_FORMAT",), "log.format", "text|json",
        "How log lines look.", _one_of("text", "json"), "text",
    ),
    Option(
        "log_level", "--log-level", ("CRSYNCER_LOG_LEVEL",), "log.level", "debug|info|warning|error",
        "The least important log lines to write.", _one_of("debug", "info", "warning", "error"), "info",
    ),
    Option(
        "watch_timeout", "--watch-timeout", ("CRSYNCER_WATCH_TIMEOUT",), "watchTimeout", "SECONDS",
        "Ask the servers to end each watch after about this long, 30 to 600. Behind a gateway that hides a dead"
        " back end, this is how long that can go unnoticed.",
        _watch_timeout, "300",
    ),
    Option(
        "audit_interval", "--audit-interval", ("CRSYNCER_AUDIT_INTERVAL",), "auditInterval", "SECONDS",
        "Compare each kind with what both servers have about this often, give or take half, 10 to 604800.",
        _audit_interval, "21600",
    ),
    Option(
        "boot_id_file", "--boot-id-file", ("CRSYNCER_BOOT_ID_FILE",), "bootIdFile", "FILE",
        "What is in it changes when the robot boots: its cluster is then listed anew, for k3s may have lost writes.",
        _boot_id_file, "/proc/sys/kernel/random/boot_id",
    ),
)  # fmt: skip

"""Every setting: its key in the configuration file, and the option of the command line with its variable."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

PAIR = "CLOUD=ROBOT"
"""What a pair of names is called: in a file, such an option is a mapping."""
K3S = "etc/rancher/k3s/k3s.yaml"


def is_not(text: str, allowed: str) -> click.BadParameter:
    """The error of a text that is not allowed."""
    return click.BadParameter(f"{text[:80]!r} is not {allowed}")


def matching(pattern: str, allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise is_not(text, allowed)
        return text

    return parse


_robot_name = matching(
    r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?",
    "a label value: at most 63 letters, digits, '-', '_', '.', a letter or digit at each end",
)
a_context = matching(r"(?s:.+)", "the name of a context in the kubeconfig")
a_namespace = matching(
    "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
    "the name of a namespace: at most 63 lower-case letters, digits and '-', with a letter or digit at each end",
)


def _report_namespace(text: str) -> str:
    return text if text == "off" else str(a_namespace(text))


def a_path(text: str) -> Path:
    """The absolute path that was meant; raises click.BadParameter."""
    if not text or "\0" in text:
        raise is_not(text, "a path")
    return Path.cwd() / text


def a_directory(text: str) -> Path:
    """The absolute path of a directory, which need not exist; raises click.BadParameter."""
    path = a_path(text)
    if os.path.exists(path) and not os.path.isdir(path):  # unlike Path's, these do not raise where a parent is closed
        raise is_not(text, "a directory, which is created when it does not exist; there is a file of that name")
    return path


def _state_dir(ctx: click.Context, param: click.Parameter, text: str | None) -> Path | None:
    source = ctx.get_parameter_source(str(param.name))
    if text and source is ParameterSource.ENVIRONMENT and not os.environ.get("CRSYNCER_STATE_DIR"):
        text = text.split(":")[0]  # systemd separates several state directories by colons
    return None if text is None else a_directory(text)


def _boot_id_file(text: str) -> Path:
    path = a_path(text)
    if os.path.isdir(path):
        raise is_not(text, "a file; one that cannot be read only means that boots go unnoticed")
    return path


def a_listen(text: str) -> tuple[str, int] | str:
    if text == "off":
        return text
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    well_formed = colon and host and (bracketed or ":" not in host) and not re.search(r"[\s/@\[\]]", host)
    if not (well_formed and re.fullmatch(r"[0-9]{1,5}", port) and int(port) <= 65535):
        raise is_not(text, "HOST:PORT such as 127.0.0.1:9464 or [::1]:9464, or off")
    return host, int(port)


def _several(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The items, also where several are separated by commas; commas alone stay: no items would mean all namespaces."""
    return tuple(dict.fromkeys(item for text in texts for item in text.split(",") if item or not text)) or texts


def _namespaces(_ctx: click.Context, _param: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(a_namespace, _several(texts)))


def _namespace_map(_ctx: click.Context, _param: click.Parameter, texts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The pairs of names; none of them twice on a side, or two objects would have the same copy."""
    pairs: list[tuple[str, str]] = []
    for text in _several(texts):
        cloud, equals, robot = text.partition("=")
        if not equals:
            raise is_not(text, f"{PAIR}: the cloud's name of a namespace, and the robot's")
        pair = a_namespace(cloud), a_namespace(robot)
        for known in pairs:
            twice = [name for name, other in zip(pair, known, strict=True) if name == other]
            if twice:
                raise is_not(text, f"allowed after {'='.join(known)}: each name of a side once")
        pairs.append(pair)
    return tuple(pairs)


_group = matching(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}", "the name of a group: at most 32 letters, digits, '-', '_', '.'")
_trusted = matching(
    r"[a-z][a-z0-9-]{0,62}(\.[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?|\*",
    "RESOURCE[.GROUP] such as configmaps or leases.coordination.k8s.io, or api, or *",
)


def _trust(_ctx: click.Context, _param: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(_trusted, _several(texts)))


def _seconds(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,7}", text) or not least <= int(text) <= most:
            raise is_not(text, f"a whole number of seconds from {least} to {most}")
        return int(text)

    return parse


def option(
    key: str, flag: str, metavar: str, about: str, *, otherwise: str, name: str = "", **more: Any
) -> tuple[str, click.Option]:
    name = name or flag.removeprefix("--").replace("-", "_")
    more = {"envvar": [f"CRSYNCER_{name.upper()}"]} | more
    text = f"{about}  [key: {key}]" if key else about
    return key, click.Option([flag, name], metavar=metavar, help=text, show_default=otherwise, show_envvar=True, **more)


_, CONFIG = option(
    "", "--config", "FILE",
    "Configuration file (YAML), watched and loaded again on change.",
    otherwise="none", type=a_path,
)  # fmt: skip

OPTIONS = dict((
    option(
        "robotName", "--robot-name", "NAME",
        "This robot's name, as in the label cloudrobotics.com/robot-name.",
        otherwise="none: filtered kinds and those with spec-source robot are then misconfigured", type=_robot_name,
    ),
    option(
        "cloud.kubeconfig", "--cloud-kubeconfig", "FILE",
        "How to reach the cloud's API server.",
        otherwise="required", type=a_path,
    ),
    option(
        "robot.kubeconfig", "--robot-kubeconfig", "FILE",
        "How to reach the robot's API server.",
        otherwise=f"the in-cluster account, else /{K3S}", type=a_path,
    ),
    option(
        "cloud.context", "--cloud-context", "NAME",
        "Context in the cloud's kubeconfig.",
        otherwise="the current context", type=a_context,
    ),
    option(
        "robot.context", "--robot-context", "NAME",
        "Context in the robot's kubeconfig.",
        otherwise="the current context", type=a_context,
    ),
    option(
        "insecureSkipTlsVerify", "--insecure-skip-tls-verify", "",
        "Take a kubeconfig with insecure-skip-tls-verify: anybody may then pose as its server.",
        otherwise="false: such a kubeconfig is refused", is_flag=True, default=None, type=bool,
    ),
    option(
        "requireConfinement", "--require-confinement", "",
        "Do not use an account of the cloud that may do more than a robot should (crsyncer check-access). Without the"
        " link the agent starts and goes on; the account is checked before it is used.",
        otherwise="false: any account is used", is_flag=True, default=None, type=bool,
    ),
    option(
        "stateDir", "--state-dir", "DIR",
        "Where the agent keeps what must survive a restart.",
        otherwise="/var/lib/crsyncer", envvar=["CRSYNCER_STATE_DIR", "STATE_DIRECTORY"], callback=_state_dir,
    ),
    option(
        "listen", "--listen", "HOST:PORT",
        "Where to serve /livez, /readyz and /metrics; off for nowhere.",
        otherwise="127.0.0.1:9464", type=a_listen,
    ),
    option(
        "namespaces", "--namespace", "NS",
        "Sync this namespace only; repeatable. The variable takes several, separated by commas.",
        otherwise="all", name="namespaces", multiple=True, callback=_namespaces,
    ),
    option(
        "namespaceMap", "--namespace-map", PAIR,
        "Sync this namespace of the cloud with this one of the robot, and no others; repeatable. The variable takes"
        " several, separated by commas, and the key a mapping. Not with --namespace.",
        otherwise="none: namespaces have the same name on both sides", multiple=True, callback=_namespace_map,
    ),
    option(
        "policies.trust", "--trust", "RESOURCE[.GROUP]",
        "What a SyncPolicy that is itself a copy may ask for: a kind without a CRD, by its name, api for the field api,"
        " or * for everything; repeatable. The variable takes several, separated by commas.",
        otherwise="none: such a SyncPolicy may name only kinds with a CRD", multiple=True, callback=_trust,
    ),
    option(
        "reportNamespace", "--report-namespace", "NS",
        "Where in the cloud the agent reports to a fleet, if its settings do not name the namespace robot-NAME; off for"
        " no report. Where the cloud has no fleet, nothing is reported.",
        otherwise="default", type=_report_namespace,
    ),
    option(
        "control.group", "--control-group", "GROUP",
        "Members of this group of the machine may change something (holds, pending, resync) where they may look.",
        otherwise="none: only the agent's own user and root", type=_group,
    ),
    option(
        "log.format", "--log-format", "text|json",
        "How log lines look.",
        otherwise="text", type=click.Choice(("text", "json"), case_sensitive=False),
    ),
    option(
        "log.level", "--log-level", "debug|info|warning|error",
        "The least important log lines to write.",
        otherwise="info", type=click.Choice(("debug", "info", "warning", "error"), case_sensitive=False),
    ),
    option(
        "watchTimeout", "--watch-timeout", "SECONDS",
        "Ask the servers to end each watch after about this long, 30 to 600. Behind a gateway that hides a dead"
        " back end, this is how long that can go unnoticed.",
        otherwise="300", type=_seconds(30, 600),
    ),
    option(
        "auditInterval", "--audit-interval", "SECONDS",
        "Compare each kind with what both servers have about this often, give or take half, 10 to 604800.",
        otherwise="21600", type=_seconds(10, 604_800),
    ),
    option(
        "bootIdFile", "--boot-id-file", "FILE",
        "What is in it changes when the robot boots: its cluster is then listed anew, for k3s may have lost writes.",
        otherwise="/proc/sys/kernel/random/boot_id", type=_boot_id_file,
    ),
))  # fmt: skip
"""By key. An option's name is a field of Settings; a missing value is None, or () for a repeatable option."""

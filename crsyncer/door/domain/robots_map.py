"""The map from robots to shards: made of the Robots' labels, as a file, and as what differs in a running HAProxy."""

from collections.abc import Collection, Iterator, Mapping

from crsyncer.core.accounts.robot_account import is_robot_name, robot_namespace
from crsyncer.core.content.annotations import ROOT, SHARD_LABEL
from crsyncer.core.model import Json

_SHARD_HINT = f"correct the Robot's label {SHARD_LABEL}, or give the shard with --shard"
_NAME_HINT = "a robot's name is a DNS label of at most 57 characters: make the Robot anew, under another name"

Routes = Mapping[str, str]
"""By a robot's namespace the name of its shard."""


def shard_label(robot: Json) -> str:
    """The shard that a Robot asks for."""
    return str((robot["metadata"].get("labels") or {}).get(SHARD_LABEL) or ROOT)


def routes(labels: Mapping[str, str], shards: Collection[str]) -> dict[str, str]:
    """The map, for Robots with the shards that they ask for.

    A robot whose name is unusable, or whose shard nobody knows, is not in it (G4.1).
    """
    return {robot_namespace(name): shard for name, shard in labels.items() if is_robot_name(name) and shard in shards}


def unroutable(labels: Mapping[str, str], shards: Collection[str]) -> list[tuple[str, str]]:
    """Why each of those Robots is not in the map, a line and a hint each."""
    return [
        (f"robot {name}: shard {shard} is not known", _SHARD_HINT)
        if is_robot_name(name)
        else (f"robot {name}: the name is unusable", _NAME_HINT)
        for name, shard in sorted(labels.items())
        if not is_robot_name(name) or shard not in shards
    ]


def map_text(wanted: Routes) -> str:
    """The map as HAProxy's file: sorted lines `robot-NAME SHARD`."""
    return "".join(f"{namespace} {shard}\n" for namespace, shard in sorted(wanted.items()))


def read_map(text: str) -> dict[str, str]:
    """A map's file; lines that are none are left out."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def changes(running: Routes, wanted: Routes, file: str) -> Iterator[str]:
    """The commands by which a running HAProxy's map becomes the wanted one.

    Those that are gone come first: a robot that is moved is set, and never without a shard between.
    """
    for namespace in sorted(running.keys() - wanted.keys()):
        yield f"del map {file} {namespace}"
    for namespace, shard in sorted(wanted.items()):
        if namespace not in running:
            yield f"add map {file} {namespace} {shard}"
        elif running[namespace] != shard:
            yield f"set map {file} {namespace} {shard}"

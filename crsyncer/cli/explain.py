"""`crsyncer explain`: why an object is, or isn't, on the other side."""

import time
from pathlib import Path
from typing import Any

import click

from crsyncer.cli.shared import as_json_option, ask_or, chosen_state_dir, settings_options, show_json
from crsyncer.cli.status import SAVED
from crsyncer.core.explain import ObjectFacts, render, stored_policy
from crsyncer.core.explain import explain as explained
from crsyncer.core.model import Gap, Json, Key, Loaded, Record, Side, Sighting
from crsyncer.core.policy import Policy
from crsyncer.core.report import HoldFacts
from crsyncer.core.target import find_key, find_resource
from crsyncer.core.words import unix


@click.command()
@click.argument("resource")
@click.argument("name", metavar="[NAMESPACE/]NAME")
@settings_options("state_dir")
@as_json_option
def explain(resource: str, name: str, as_json: bool, **flags: Any) -> None:
    """Why is, or isn't, this object on the other side?

    Says rule by rule what was decided, what both sides have, what differs and what is pending. Without a running
    agent it says what the store knows. RESOURCE is a CRD's name, such as goals.lab.example.com; where only one kind
    has it, the plural will do. Without NAMESPACE it is the one object of that name, else the one in default.
    """
    directory = chosen_state_dir(flags)
    request = {"command": "explain", "resource": resource, "name": name}
    content = ask_or(directory, request, lambda: _stored(directory, resource, name))
    if as_json:
        show_json(content)
    else:
        click.echo(render(content, time.time()), nl=False)


def _stored(directory: Path, resource: str, name: str) -> Json:
    from crsyncer.edges.offline import read_object, read_offline  # SQLite is not needed while the agent answers

    meta = read_offline(directory).meta
    saved = meta.get(SAVED) or {"kinds": [], "robot": "", "holds": []}
    kinds = {kind["resource"]: kind for kind in saved["kinds"]}
    resource = find_resource(resource, kinds)
    kind = kinds.get(resource)
    policy = stored_policy(kind, saved["robot"]) if kind is not None else None
    namespaced = policy is None or policy.namespaced
    key, loaded, bodies = read_object(
        directory, resource, lambda found: find_key(name, _keys(found), namespaced=namespaced)
    )
    return explained(
        ObjectFacts(
            resource,
            key,
            kind=kind,
            known=tuple(sorted(kinds)),
            policy=policy,
            running=False,
            sights={side: _sight(loaded, side, key, policy) for side in Side},
            bodies=bodies,
            record=loaded.records.get(key, Record()),
            pending=loaded.pending.get(key),
            tombstone=loaded.tombstones.get(key),
            holds=tuple(_hold(h) for h in saved["holds"] if h["resource"] == resource and str(key) in h["names"]),
        )
    )


def _keys(loaded: Loaded) -> set[Key]:
    return {*loaded.views[Side.CLOUD], *loaded.views[Side.ROBOT], *loaded.pending, *loaded.tombstones}


def _sight(loaded: Loaded, side: Side, key: Key, policy: Policy | None) -> Sighting:
    """What was seen last. That nothing is stored says little, but for a recorded deletion."""
    gone = policy is not None and side is policy.upstream and key in loaded.tombstones
    return loaded.views[side].get(key) or (Gap.ABSENT if gone else Gap.UNSEEN)


def _hold(hold: Json) -> HoldFacts:
    return HoldFacts(
        hold["id"],
        hold["resource"],
        hold["reason"],
        hold["objects"],
        unix(hold["since"]),
        hold["hint"],
        hold["message"],
    )

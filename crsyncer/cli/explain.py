"""`crsyncer explain`: why is, or isn't, this object on the other side?"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from crsyncer.cli.output import full_name, namespace_option, object_name, output_options, show
from crsyncer.cli.shared import ask_agent_or_store, find_state_dir, object_target, settings_options
from crsyncer.cli.yaml_text import yaml_text
from crsyncer.console.explained.explanation import ObjectFacts, stored_policy
from crsyncer.console.explained.explanation import explain as explained
from crsyncer.console.explained.target import find_key, synced_resource
from crsyncer.console.screens.report import SAVED_STATUS_KEY, pending_finalizer, pending_status
from crsyncer.console.screens.screen import cut
from crsyncer.core.content.shape import changes_content, signature_name
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.namespaces import meta_name, read_namespaces
from crsyncer.core.model import Found, Gap, Json, Key, Loaded, Record, Side
from crsyncer.core.reports.text import count, duration, plain, unix

_MARKS = {True: "ok", False: "NO", None: ".."}
_VALUE_WIDTH = 40
_MOST_DIFFERENCES = 20


@click.command(params=settings_options("state_dir"))
@click.argument("resource")
@click.argument("name", metavar="[NAMESPACE/]NAME", required=False, default="")
@namespace_option
@output_options
def explain(resource: str, name: str, namespace: str, output: str, **flags: Any) -> None:
    """Why is, or isn't, this object on the other side?

    Shows the decision rule by rule, both objects, their differences, and what is pending with the last error and the
    next try. Without a running agent it shows the last state in the store.

    RESOURCE is a kind as kubectl takes it: goals.lab.example.com, goals, goal or a short name; RESOURCE/NAME works
    too. Without a namespace it means the only object of that name, else the object in default. -o wide also prints
    both objects.
    """
    resource, name = object_target(resource, name, namespace)
    directory = find_state_dir(flags)
    request = {"command": "explain", "resource": resource, "name": name}
    content = ask_agent_or_store(directory, request, lambda: _stored(directory, resource, name))

    def text() -> str:
        return render(content, time.time()).rstrip("\n")

    def wide() -> str:
        blocks = [text()]
        for side in Side:
            lines = yaml_text(content["objects"][side]).splitlines()
            blocks.append("\n".join([f"{side}:", *map(plain, lines)]))
        return "\n\n".join(blocks)

    show(content, output, names=[full_name(content)], text=text, wide=wide)


def _stored(directory: Path, resource: str, name: str) -> Json:
    from crsyncer.adapters.store.offline import read_bodies, read_offline  # slow: imports SQLite

    state = read_offline(directory)
    saved = state.meta.get(SAVED_STATUS_KEY) or {"kinds": [], "robot": "", "holds": []}
    kinds = {kind["resource"]: kind for kind in saved["kinds"]}
    policies = saved.get("policies", ())
    known = {name: kind.get("aliases", ()) for name, kind in kinds.items()}
    known |= {name: known.get(name, ()) for name in (*state.kinds, *(row["resource"] for row in policies))}
    resource = synced_resource(resource, known)
    kind = kinds.get(resource)
    namespaces = read_namespaces(state.meta.get(meta_name(resource)))
    policy = stored_policy(kind, saved["robot"], namespaces) if kind is not None else None
    namespaced = policy is None or policy.namespaced
    loaded = state.kinds.get(resource, Loaded())
    key = find_key(name, _keys(loaded), namespaced=namespaced)
    waiting, finalizer = loaded.pending.get(key), loaded.finalizers.get(key)
    pending = [pending_status(waiting, policy.upstream)] if policy and waiting else []
    pending += [pending_finalizer(finalizer)] if finalizer and finalizer.since else []
    return explained(
        ObjectFacts(
            resource,
            key,
            kind=kind,
            annotated=tuple(sorted(kinds)),
            policies=tuple(row for row in policies if row["resource"] == resource),
            policy=policy,
            running=False,
            is_comparable=not changes_content(state.meta.get(signature_name(resource)) or ""),
            observations={side: _last_seen(loaded, side, key, policy) for side in Side},
            bodies=read_bodies(directory, resource, key),
            record=loaded.records.get(key, Record()),
            pending=tuple(pending),
            tombstone=loaded.tombstones.get(key),
            holds=tuple(h for h in saved["holds"] if h["resource"] == resource and str(key) in h["names"]),
        )
    )


def _keys(loaded: Loaded) -> set[Key]:
    return {
        *loaded.views[Side.CLOUD],
        *loaded.views[Side.ROBOT],
        *loaded.pending,
        *loaded.tombstones,
        *loaded.finalizers,
    }


def _last_seen(loaded: Loaded, side: Side, key: Key, policy: KindPolicy | None) -> Found:
    """The stored observation. An object that is not stored is unseen, unless its deletion is recorded."""
    deleted = policy is not None and side is policy.upstream and key in loaded.tombstones
    return loaded.views[side].get(key) or (Gap.ABSENT if deleted else Gap.UNSEEN)


def render(content: Json, now: float) -> str:
    """An explanation as text; `now` is Unix time, in seconds. The first line is the answer."""
    blocks = [
        [f"{content['resource']} {object_name(content)}: {content['state']}: {content['summary']}"],
        [f"{side:<7}{_called(content, side)}{_seen(content['objects'][side])}" for side in Side],
        [f"{_MARKS[step['ok']]}  {step['rule']:<5} {step['text']}" for step in content["steps"]],
        [*_differences(content["differences"])],
        [*_pending(content["pending"], now)],
    ]
    return "\n\n".join("\n".join(map(plain, block)) for block in blocks if block) + "\n"


def _called(content: Json, side: Side) -> str:
    """The name of the object on a side, where that is not the one that the object is asked for by."""
    name = object_name(content["copy"]) if content["copy"] is not None and side != content["specSource"] else ""
    return f"{name}: " if name not in ("", object_name(content)) else ""


def _seen(seen: Json) -> str:
    if seen["state"] != "seen":
        return str(seen["state"])
    deleted = f", being deleted, finalizers: {', '.join(seen['finalizers']) or 'none'}" if seen["terminating"] else ""
    return f"uid {seen['uid']}, resourceVersion {seen['resourceVersion']}, generation {seen['generation']}{deleted}"


def _differences(differences: list[Json]) -> Iterator[str]:
    if differences:
        yield "DIFFERENCES"
    for found in differences[:_MOST_DIFFERENCES]:
        texts = {side: "-" if found[side] is None else json.dumps(found[side], ensure_ascii=False) for side in Side}
        values = [f"{side} {cut(text, _VALUE_WIDTH)}" for side, text in texts.items()]
        yield f"{found['path']}: {', '.join(values)}"
    if (rest := len(differences) - _MOST_DIFFERENCES) > 0:
        yield f"and {rest} more: --json shows both objects"


def _pending(pending: list[Json], now: float) -> Iterator[str]:
    if pending:
        yield "PENDING"
    for row in pending:
        parts = [f"{row['what']} for the {row['to']}"]
        if row["dead"]:
            parts.append("rejected permanently")
        if row["since"]:
            parts.append(f"waiting for {duration(now - unix(row['since']))}, tried {count(row['attempts'], 'time')}")
        if row["error"]:
            parts.append(f"last answer: {row['error']}")
        if row["nextTry"]:
            parts.append(f"next try in {duration(unix(row['nextTry']) - now)}")
        yield "; ".join(parts)

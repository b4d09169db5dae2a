"""What would change on the other side if a CRD that travels followed its source now: `crsyncer api diff` (C8)."""

from collections.abc import Mapping
from dataclasses import replace

from crsyncer.console.compare.lister import objects
from crsyncer.console.screens.reasons import API_HINT, kind_hint
from crsyncer.core.apis.api_plan import api_set_name, is_foreign, read_entry
from crsyncer.core.apis.revise import Change, breaking, follow, shown_crd
from crsyncer.core.apis.travel_names import name_on, revision_of
from crsyncer.core.kinds.sync_policy import Api
from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import API_SETS, CRD_COLLECTION, Collection
from crsyncer.errors import Conflict, SyncError
from crsyncer.ports import Send


async def compare_api(resource: str, api: Api, robot: str, senders: Mapping[Side, Send]) -> Json:
    """One CRD that travels: its row in the document of `crsyncer api diff`.

    The row's `error` is the reason why it could not be compared; None: it was.
    """
    row: Json = {
        "resource": resource,
        "source": api.source.value,
        "paused": api.paused,
        "revision": None,
        "entry": None,
        "breaking": [],
        "held": None,
        "current": None,
        "new": None,
        "error": None,
        "hint": None,
    }
    try:
        await _fill(row, api, robot, senders)
    except SyncError as error:
        row |= {"error": str(error), "hint": error.hint or None}
    return row


async def _fill(row: Json, api: Api, robot: str, senders: Mapping[Side, Send]) -> None:
    resource, target = row["resource"], api.source.other
    here, there = (name_on(side, resource, api) for side in (api.source, target))
    own = await _find(senders[api.source], CRD_COLLECTION, here)
    if own is None:
        raise SyncError(f"the {api.source} has no CRD {here}", hint=kind_hint("kind-missing"))
    try:
        api_set = await _find(senders[target], API_SETS, api_set_name(target, robot))
    except Conflict:
        raise SyncError(f"the {target} does not serve APIRevisions and APISets", hint=API_HINT) from None
    crd = await _find(senders[target], CRD_COLLECTION, there)
    revision = revision_of(shown_crd(own), resource, api)
    row |= {"revision": revision.name, "entry": read_entry(api_set, there).revision or None}
    current = None if crd is None else shown_crd(crd)
    new = follow(current, revision)
    row |= {"new": new["spec"], "current": None if current is None else current["spec"]}
    if current is None or current["spec"] == new["spec"]:
        return
    found = breaking(current, revision)
    row["breaking"] = [each.row for each in found]
    if target is Side.CLOUD and is_foreign(current, robot):
        row["held"] = f"the cloud's CRD was not made by {robot}"
    elif any(each.change is Change.SCOPE for each in found):
        row["held"] = "another scope is never followed"
    elif found and not api.allow_breaking:
        row["held"] = "it is breaking"


async def _find(send: Send, collection: Collection, name: str) -> Json | None:
    """An object, by the right to list it; None: there is none. Raises SyncError."""
    async for raw in objects(send, replace(collection, name=name), page=1):
        return raw
    return None

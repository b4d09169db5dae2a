"""What the commands say of a simulated fleet: they read its API server as those of a platform engineer do."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from crsyncer.adapters.config import FleetSettings
from crsyncer.cli.fleet.fleet_screen import exit_code
from crsyncer.cli.fleet.read_facts import read_facts, read_turns
from crsyncer.cli.fleet.tried import try_objects
from crsyncer.cli.fleet.whole_fleet import WholeFleet, load_fleet
from crsyncer.core.model import Json
from crsyncer.core.requests.calls import Call
from crsyncer.errors import SyncError
from crsyncer.fleet.domain.rollout.decisions import decision_of
from crsyncer.fleet.domain.shown.explain_document import fleet_explain
from crsyncer.fleet.domain.shown.planning import plan
from crsyncer.fleet.domain.shown.release_document import HeldHere, orphan_holds, orphans, shown_holds, with_names
from crsyncer.fleet.domain.shown.status_document import fleet_status
from crsyncer.fleet.domain.shown.turns import Turns
from crsyncer.ports import Reply, Send
from tests.fleet_model.fleet_world import FleetWorld
from tests.fleet_model.world_parts import DECISIONS, HOME

SETTINGS = FleetSettings(controller_namespace=HOME)


class Asked:
    """The documents of the commands, as of now."""

    def __init__(self, world: FleetWorld, shards: Mapping[str, Send | SyncError] = MappingProxyType({})) -> None:
        """`shards`: those that are given to the commands."""
        self._world = world
        self._shards = shards

    def status(self) -> Json:
        """`crsyncer fleet status`."""

        async def ask() -> Json:
            return fleet_status(await read_facts(self._send, SETTINGS, self._shards))

        return self._world.clock.run(ask())

    def exit_code(self) -> int:
        """That of `crsyncer fleet status`."""
        return exit_code(self.status())

    def plan(self, *given: Json) -> Json:
        """`crsyncer fleet plan`, also with the objects of a file; `notes` is what it says of them."""
        found, turns = self._load()
        notes = self._world.clock.run(try_objects(self._send, found, given)) if given else []
        keys = found.fleet.all_keys()
        return {**plan(found.fleet, found.losses, keys, now=found.now, turns=turns), "notes": notes}

    def whens(self) -> Mapping[str, str]:
        """When the plan has each replica written, by verb, namespace and name."""
        writes = self.plan()["writes"]
        return {f"{each['verb']} {each['namespace']}/{each['name']}": each["when"] for each in writes}

    def unknown(self, *robots: str) -> list[str]:
        """What the commands say that they do not know of these robots, or of all."""
        return [str(each) for each in self._load()[0].unknown(*robots)]

    def held(self) -> list[HeldHere]:
        """What `crsyncer fleet release --all` shows."""
        found, _ = self._load()
        placements = found.fleet.index.placements.values()
        gone = orphans(map(decision_of, self._world.stored(DECISIONS).values()), placements)
        holds = [*shown_holds(placements), *orphan_holds(found.losses, gone)]
        return [with_names(each, found.fleet, found.losses) for each in holds]

    def explain(self, placement: str, robot: str) -> Json:
        """`crsyncer fleet explain`."""

        found, turns = self._load()
        shown = found.fleet.index.placements[f"default/{placement}"]
        return fleet_explain(found.fleet, found.losses, shown, robot, turns=turns, now=found.now)

    def _load(self) -> tuple[WholeFleet, Turns]:
        found: WholeFleet = self._world.clock.run(load_fleet(self._send, SETTINGS, self._shards))
        turns: Turns = self._world.clock.run(read_turns(self._send, found, self._shards))
        return found, turns

    async def _send(self, call: Call) -> Reply:
        return replace(self._world.server.answer(call), date=self._world.clock.unix())

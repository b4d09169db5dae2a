"""What the commands say of a simulated fleet: they read its API server as those of a platform engineer do."""

from collections.abc import Mapping

from crsyncer.adapters.config import FleetSettings
from crsyncer.cli.fleet.read_facts import read_facts, read_reports
from crsyncer.cli.fleet.whole_fleet import WholeFleet, load_fleet
from crsyncer.core.model import Json
from crsyncer.core.requests.calls import Call
from crsyncer.fleet.domain.rollout.reports import Reports
from crsyncer.fleet.domain.shown.explain_document import fleet_explain, robot_view
from crsyncer.fleet.domain.shown.planning import plan
from crsyncer.fleet.domain.shown.status_document import fleet_status
from crsyncer.fleet.domain.shown.turns import Turns
from crsyncer.ports import Reply
from tests.fleet_model.fleet_world import FleetWorld
from tests.fleet_model.world_parts import HOME

SETTINGS = FleetSettings(controller_namespace=HOME)


class Asked:
    """The documents of the commands, as of now."""

    def __init__(self, world: FleetWorld) -> None:
        self._world = world

    def status(self) -> Json:
        """`crsyncer fleet status`."""

        async def ask() -> Json:
            return fleet_status(await read_facts(self._send, SETTINGS))

        return self._world.clock.run(ask())

    def plan(self) -> Json:
        """`crsyncer fleet plan`."""
        found, turns = self._load()
        keys = found.fleet.all_keys()
        return plan(found.fleet, found.losses, keys, now=found.now, turns=turns)

    def whens(self) -> Mapping[str, str]:
        """When the plan has each replica written, by verb, namespace and name."""
        writes = self.plan()["writes"]
        return {f"{each['verb']} {each['namespace']}/{each['name']}": each["when"] for each in writes}

    def explain(self, placement: str, robot: str) -> Json:
        """`crsyncer fleet explain`."""

        found, turns = self._load()
        shown = found.fleet.index.placements[f"default/{placement}"]
        view = robot_view(robot, shown, found.fleet, decisions=found.decisions, reports=self._reports())
        return fleet_explain(found.fleet, found.losses, shown, view, turns=turns, now=found.now)

    def _load(self) -> tuple[WholeFleet, Turns]:
        found: WholeFleet = self._world.clock.run(load_fleet(self._send, SETTINGS))
        turns = Turns(found.fleet, decisions=found.decisions, reports=self._reports(), now=found.now)
        return found, turns

    def _reports(self) -> Reports:
        found: Reports = self._world.clock.run(read_reports(self._send, SETTINGS, self._world.server.storage.unix))
        return found

    async def _send(self, call: Call) -> Reply:
        return self._world.server.answer(call)

"""The SyncPolicies of the robot: which kind each is for, and the condition that tells what became of it (C1)."""

import asyncio
import json
import logging
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from crsyncer.core.kinds.built_in_kind import CRD_TO_COME, unknown
from crsyncer.core.kinds.configured import configured_kind, names_in_cloud, without_crd
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.merge_settings import (
    PolicyObject,
    problem_of,
    read_object,
    related_problem,
    travelling_api,
)
from crsyncer.core.kinds.namespaces import Namespaces
from crsyncer.core.kinds.policy_condition import ShownStatus, shown_status, write_ready
from crsyncer.core.kinds.read_kind import is_annotated
from crsyncer.core.model import Json, Key, Side
from crsyncer.core.related.relate import related_entries
from crsyncer.core.reports.facts import POLICY_RULE
from crsyncer.core.requests.answers import shown
from crsyncer.core.requests.calls import SYNC_POLICIES
from crsyncer.core.watching.backoff import RETRY
from crsyncer.engine.apis.lifecycle import Lifecycle
from crsyncer.engine.context import EngineContext
from crsyncer.engine.kinds.built_in import BuiltInKinds
from crsyncer.engine.kinds.negotiation import UNKNOWN, Disagreement
from crsyncer.engine.related.related_objects import RelatedObjects
from crsyncer.errors import Conflict, NotServed, SyncError, Unsure
from crsyncer.runtime.listwatch import ListWatch, Phase
from crsyncer.runtime.object_informer import ObjectInformer
from crsyncer.runtime.waits import chance

log = logging.getLogger(__name__)

_PAGE = 100


class Catalog:
    """Watches the SyncPolicies once `open` is called: without their CRD there are none.

    `changed(resource)` is called when a policy for that kind is another one or gone, `listed()` when all are known at
    last, `phase_changed()` when the watch has another phase.

    `problem_of_kind(resource)` is why a kind cannot be synced, empty: it can, None: it is not known.
    `crds` are the robot's CRDs by name, as JSON, `kinds()` all kinds that are configured.
    """

    def __init__(
        self,
        context: EngineContext,
        *,
        robot: str,
        changed: Callable[[str], None],
        listed: Callable[[], None],
        phase_changed: Callable[[], None],
        problem_of_kind: Callable[[str], str | None],
        crds: Mapping[str, str],
        kinds: Callable[[], Iterable[KindPolicy]],
    ) -> None:
        self.is_listed = True
        """Whether the policies of each kind are known."""
        self._tasks = asyncio.TaskGroup()
        self.lifecycle = Lifecycle(context, robot=robot, spawn=self._tasks.create_task, changed=self._api_changed)
        """The CRDs that travel."""
        self.related_objects = RelatedObjects(context, is_misconfigured=self._is_misconfigured)
        """Which objects are related to which."""
        self._connection = context.connections[Side.ROBOT]
        self._clock = context.clock
        self._expressions = context.expressions
        self._trust = context.trust
        self._changed = changed
        self._all_listed = listed
        self._problem_of_kind = problem_of_kind
        self._crds = crds
        self._kinds = kinds
        self._objects: dict[str, PolicyObject] = {}
        self._named: defaultdict[str, set[str]] = defaultdict(set)
        """By kind, the policies that name it."""
        self._statuses: dict[str, ShownStatus] = {}
        self._told: dict[str, tuple[str, str]] = {}
        """By policy, the uid and the problem that its condition was last written for, or could not be written for."""
        self._due = asyncio.Event()
        """A condition may have to be written."""
        self._built_in = BuiltInKinds(context, changed=changed, spawn=self._tasks.create_task)
        self._watch = ObjectInformer(
            self._connection,
            SYNC_POLICIES,
            page=_PAGE,
            watch_timeout=context.watch_timeout,
            shown=self._shown,
            gone=self._gone,
            listed=self._listed,
            phase_changed=phase_changed,
        )
        self.listwatch = self._watch.listwatch

    def open(self) -> Coroutine[Any, Any, None]:
        """There may be SyncPolicies, which are to be listed: the work of a task that watches them, forever."""
        self.is_listed = False
        return self._run()

    async def _run(self) -> None:
        async with self._tasks:
            self._tasks.create_task(self._watch.run())
            self._tasks.create_task(self._keep_conditions())

    def close(self) -> None:
        """There are no SyncPolicies any more."""
        self.lifecycle.follow({})

    @property
    def listwatches(self) -> list[ListWatch]:
        """Those of the policies, and of CRDs that travel."""
        return [self.listwatch, *self.lifecycle.listwatches]

    @property
    def obstacle(self) -> Disagreement:
        """Why a kind waits until the policies are listed."""
        why = self.listwatch.message
        if self.listwatch.phase is Phase.FORBIDDEN:
            return Disagreement("forbidden", f"the robot's SyncPolicies: {why}")
        return Disagreement(UNKNOWN, f"the robot's SyncPolicies are not known yet{f': {why}' if why else ''}")

    def kind_policy(self, crd: Json, robot: str, namespaces: Namespaces) -> KindPolicy | None:
        """What a robot's CRD and the policies for its kind ask for; None when the kind is not ours."""
        name = crd["metadata"]["name"]
        found = configured_kind(
            crd,
            robot,
            namespaces=namespaces,
            objects=self._for_kind,
            annotated=self._annotated,
            policies=self._objects.values(),
            entries=(each for kind in self._kinds() for each in related_entries(kind)),
        )
        problem = self.api_problem(name)
        if found is None or found.problem or not problem:
            return found
        return replace(found, problem=problem, rule=POLICY_RULE)

    def _annotated(self, name: str) -> bool | None:
        return is_annotated(json.loads(self._crds[name])) if name in self._crds else None

    def api_problem(self, resource: str) -> str | None:
        """Why the field `api` of a kind's policy cannot be followed; empty: it can, None: there is none."""
        crd = self.lifecycle.crds.get(resource)
        return None if crd is None else crd.problem

    def related_kinds(self, policies: Iterable[KindPolicy]) -> list[str]:
        """The kinds that have to be looked at again after a change of these: what they name, and who names them."""
        own = {each.resource for each in policies}
        named = {name for each in policies for name in _named_by(each)}
        return sorted(named | {each.resource for each in self._kinds() if own.intersection(_named_by(each))})

    def kind_without_crd(self, resource: str) -> tuple[str | None, Disagreement | None]:
        """A kind that policies name and that has no CRD, as its CRD would describe it (JSON), and its obstacle, if any.

        None: no policy names it.
        """
        found = self._for_kind(resource)
        if found and found[0].policy is not None and travelling_api(found) is not None:
            return json.dumps(unknown(found[0].policy.resource)), Disagreement("kind-missing", CRD_TO_COME)
        return self._built_in.description(resource), self._built_in.obstacle(resource)

    def crds_changed(self) -> None:
        """The robot has other CRDs: other kinds have none now."""
        found = without_crd(self._objects.values() if self.is_listed else (), self._crds)
        self._built_in.want(found.built_in)
        for each in list(self._objects.values()) if self.is_listed else ():
            if any(shared in self._crds for shared in _projected_names(each)):
                self._changed(each.resource)  # that CRD may be annotated now, or not any more
        for name in sorted(found.to_come):
            if self._problem_of_kind(name) is None:
                self._changed(name)  # its CRD is to come: it is not built-in, and has a row until then

    def names(self, resource: str) -> tuple[str, ...]:
        """The policies for a kind."""
        return tuple(each.name for each in self._for_kind(resource))

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Each policy by name: its name, the kind that it names, and why it is not followed ("": it is)."""
        for name in sorted(self._objects):
            yield name, self._objects[name].resource, self._problem(name)

    def _is_misconfigured(self, name: str) -> bool:
        """Whether a policy is there and cannot be followed."""
        return name in self._objects and bool(self._problem(name))

    def kinds_changed(self) -> None:
        """What becomes of a kind may have changed, and so the condition of its policy."""
        self._due.set()

    def _for_kind(self, resource: str) -> list[PolicyObject]:
        named = [self._objects[name] for name in sorted(self._named.get(resource, ()))]
        return [each for each in named if each.is_for(resource)]

    def _problem(self, name: str) -> str:
        found = self._objects[name]
        resource = found.resource
        kind_problem = self._problem_of_kind(resource)
        kind_problem = kind_problem or self.api_problem(resource) or kind_problem
        own = problem_of(found, self._for_kind(resource), kind_problem)
        return own or related_problem(found, self._problem_of_kind)

    def _shown(self, key: Key, raw: Json) -> None:
        name = key.name
        before, found = self._objects.get(name), read_object(raw, self._expressions, self._trust)
        self._statuses[name] = shown_status(raw)
        if found != before:
            self._forget(name)
            self._objects[name] = found
            self._named[found.resource].add(name)
            self._report(before, found)
        self._due.set()

    def _gone(self, key: Key) -> None:
        name = key.name
        self._statuses.pop(name, None)
        self._told.pop(name, None)
        self._report(self._forget(name))

    def _forget(self, name: str) -> PolicyObject | None:
        found = self._objects.pop(name, None)
        if found is not None:
            self._named[found.resource].discard(name)
        return found

    def _report(self, *objects: PolicyObject | None) -> None:
        """Nothing is reported before all are known: a kind may have two policies, and be synced by none."""
        if self.is_listed:
            self.crds_changed()
            named = [each.resource for each in objects if each is not None]
            shared = {name for each in objects if each is not None for _, name in names_in_cloud(each)}
            named += [each.resource for each in self._objects.values() if not shared.isdisjoint(_projected_names(each))]
            for resource in dict.fromkeys(named):
                self._changed(resource)

    def _listed(self) -> None:
        if not self.is_listed:
            self.is_listed = True
            self.crds_changed()
            self._all_listed()
            self._due.set()

    async def _keep_conditions(self) -> None:
        failures = 0
        while True:
            await self._due.wait()
            self._due.clear()
            if not self.is_listed:
                continue
            self._follow_apis()
            done = [await self._tell(name) for name in list(self._objects)]
            failures = 0 if all(done) else failures + 1
            if failures:
                await asyncio.sleep(RETRY.wait(failures - 1, chance()))
                self._due.set()

    def _follow_apis(self) -> None:
        """Have the CRDs travel for which a policy asks that (C8)."""
        apis = {resource: travelling_api(self._for_kind(resource)) for resource in self._named}
        self.lifecycle.follow({resource: api for resource, api in apis.items() if api is not None})

    def _api_changed(self, resource: str) -> None:
        self._changed(resource)
        self._due.set()

    async def _tell(self, name: str) -> bool:
        """Write a policy's condition if it has changed; False where that has to be tried again.

        The request bypasses the connection, so it counts as no traffic of the sync: what it comes to does not change
        what the agent does.
        """
        if name not in self._objects:
            return True  # it was deleted meanwhile
        status, problem = self._statuses[name], self._problem(name)
        call = write_ready(status, problem, now=self._clock())
        if call is None or self._told.get(name) == (status.uid, problem):
            return True
        await self._connection.up.wait()
        try:
            reply = await self._connection.cluster.request(call)
            refusal = reply.error(patch=True)
            if refusal is None:
                shown(reply.body, status.uid)
        except SyncError as error:
            log.debug("the condition of SyncPolicy %s is not written: %s", name, error)
            return False
        if isinstance(refusal, Conflict | Unsure) and not isinstance(refusal, NotServed):
            return False
        if refusal is not None:
            log.warning("the condition of SyncPolicy %s is not written: %s", name, reply.body.get("message"))
        self._told[name] = (status.uid, problem)
        return True


def _projected_names(found: PolicyObject) -> set[str]:
    """What the cloud calls the kinds of a SyncPolicy that it calls otherwise (C7)."""
    return {in_cloud for name, in_cloud in names_in_cloud(found) if in_cloud != name}


def _named_by(policy: KindPolicy) -> set[str]:
    """The kinds of related objects that a kind's SyncPolicy names."""
    own = policy.sync_policy
    return set() if own is None else {each.resource.full_name for each in own.related}

"""The statuses that robots return, as a controller drives them: events in, what is due out.

Tell each event to the Fleet first, then to `ReturnedStatuses`; both are pure, without a clock.

changed             any event of the Fleet, with the Change that it returned; a replica or a placement is gone, too
replica_shown       a replica, after its `changed`; also one that was read because of `Due.read`
source_shown, -gone an object of a placed kind that is no replica, or the answer to our write of its status
robot_changed       labels, annotations, properties or the report of a robot
acked_changed       a robot has applied what a placement has written, or has not any more
collector_shown...  StatusCollectors, CombinedStatuses, and the bodies of the latter that were written
listed              an input or a kind was listed for the first time, after the Fleet's `inputs_listed`; and, by the
                    names in `combined_objects`, StatusCollectors and CombinedStatuses

Each returns a `Due`. While `is_stale`, call `evaluate_stale(most)` again and again: 100 replicas take some 10 ms. For
what is due, ask when it is written:

ready       `ready(placement, robot)`, for the robot's tally
combined    `combined_plan(key)`; each object at most every 5 s
singletons  `singleton_plan(source)`. A Patch is for the source's status; tell the answer to one that removes to
            `singleton_removed`. Record: the placement's status has to be written first. Read: as below
read        GET the replica, or list its kind where there are many, and show it. What fails stays in `unread`

The status of a placement shows `problem` (Resolved), `collected` (Collected) and `singletons`; its finalizer waits
until the stored `singletons` are empty (F5.3). The status of a StatusCollector shows `collector_errors`.
"""

from collections.abc import Callable

from crsyncer.core.content.mutation import Expressions
from crsyncer.core.model import Json, Key
from crsyncer.fleet.domain.change import Change
from crsyncer.fleet.domain.fleet import Fleet
from crsyncer.fleet.domain.returned.combined_objects import CombinedObjects, CombinedPlan
from crsyncer.fleet.domain.returned.due import Due
from crsyncer.fleet.domain.returned.evaluations import Evaluations
from crsyncer.fleet.domain.returned.singletons import SingletonPlan, Singletons
from crsyncer.fleet.domain.values import ReplicaKey, SourceKey


class ReturnedStatuses:
    """All that follows from the statuses that robots return (F6.2, F7). Placements are called NAMESPACE/NAME.

    `expressions` is called where there are some. `is_acked` tells whether a robot has applied what a placement has
    written for it (F9.6), and `is_online` whether it reports (F9.4).
    """

    def __init__(
        self,
        fleet: Fleet,
        *,
        expressions: Callable[[], Expressions],
        is_acked: Callable[[str, str], bool],
        is_online: Callable[[str], bool],
    ) -> None:
        self._evaluations = Evaluations(fleet, expressions=expressions, is_acked=is_acked, is_online=is_online)
        self._objects = CombinedObjects(fleet, self._evaluations)
        self._singletons = Singletons(fleet)

    # Events

    def changed(self, change: Change) -> Due:
        """The fleet has taken up an event."""
        due = self._evaluations.changed(change)
        due.singletons |= self._singletons.changed(change)
        return due

    def replica_shown(self, key: ReplicaKey, raw: Json) -> Due:
        """A replica as it is now; nothing of it is kept but what its expressions made of it."""
        due = Due(singletons=self._singletons.replica_shown(key, raw))
        return due.add(self._evaluations.replica_shown(key, raw))

    def source_shown(self, raw: Json, resource: str) -> Due:
        """An object that is no replica was added or changed, or the API server has answered our write of its status."""
        return Due(singletons=self._singletons.source_shown(raw, resource))

    def source_gone(self, key: SourceKey) -> Due:
        """An object that is no replica was deleted."""
        return Due(singletons=self._singletons.source_gone(key))

    def singleton_removed(self, raw: Json, resource: str) -> Due:
        """The API server's answer to our removal of a source's status."""
        return Due(singletons=self._singletons.removed(raw, resource))

    def robot_changed(self, robot: str) -> Due:
        """Labels, annotations, properties or the report of a robot changed."""
        self._evaluations.robot_changed(robot)
        return Due()

    def acked_changed(self, placement: str, robot: str) -> Due:
        """Whether a robot has applied what a placement has written for it changed."""
        self._evaluations.acked_changed(placement, robot)
        return Due()

    def collector_shown(self, raw: Json) -> Due:
        """A StatusCollector was added or changed."""
        return self._evaluations.collector_shown(raw)

    def collector_gone(self, name: str) -> Due:
        """A StatusCollector was deleted."""
        return self._evaluations.collector_gone(name)

    def combined_shown(self, raw: Json) -> Due:
        """A CombinedStatus was added or changed, or one was written: its body, then."""
        return self._objects.shown(raw)

    def combined_gone(self, namespace: str, name: str) -> Due:
        """A CombinedStatus was deleted."""
        return self._objects.gone(namespace, name)

    def listed(self, name: str) -> Due:
        """An input, a kind, StatusCollectors or CombinedStatuses were listed consistently."""
        return self._objects.listed(name).add(Due(singletons=self._singletons.listed()))

    @property
    def is_stale(self) -> bool:
        """Whether there is something for `evaluate_stale` to do."""
        return self._evaluations.is_stale

    @property
    def unread(self) -> set[ReplicaKey]:
        """Replicas that have to be read, until they are shown or gone."""
        return self._evaluations.unread

    def evaluate_stale(self, most: int) -> Due:
        """Evaluate so many replicas for which something else has changed."""
        return self._evaluations.evaluate_stale(most)

    # What was found

    def ready(self, placement: str, robot: str) -> bool | None:
        """Whether `readyWhen` holds for all replicas of a robot now; None: the placement has none."""
        return self._evaluations.ready(placement, robot)

    def is_evaluating(self, placement: str) -> bool:
        """Whether replicas that are there were not evaluated yet, so that `ready` does not say what is so."""
        return self._evaluations.is_evaluating(placement)

    def problem(self, placement: str) -> str:
        """Why a placement is `Resolved=False` with `BadExpression`; empty: it is not."""
        return self._evaluations.problem(placement)

    def collected(self, placement: str) -> tuple[bool, str, str] | None:
        """Status, reason and message of the condition `Collected`; None: the placement has no collectors."""
        return self._evaluations.collected(placement)

    def collector_errors(self, name: str) -> tuple[str, ...]:
        """`status.errors` of a StatusCollector."""
        return self._evaluations.collector_errors(name)

    def combined_plan(self, key: Key) -> CombinedPlan:
        """What must be done about one CombinedStatus."""
        return self._objects.plan(key)

    def singleton_plan(self, source: SourceKey) -> SingletonPlan:
        """What must be done about the status of one source."""
        return self._singletons.plan(source)

    def listing(self, source: SourceKey) -> set[str]:
        """The placements whose stored status lists a source: also those that select it no more."""
        return self._singletons.listing(source)

    def singletons(self, placement: str) -> list[Json]:
        """`status.singletons` of a placement."""
        return self._singletons.entries(placement)

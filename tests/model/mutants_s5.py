"""Deliberate defects in what S5 promises: deletions and holds; noticed by tests named after the rules."""

from crsyncer.console.control import ControlCommands
from crsyncer.core import calls, decide, kind_served, watch
from crsyncer.core.deletion_holds import DeletionHolds
from crsyncer.core.hold_machine import HoldMachine
from crsyncer.engine.cache import Cache
from crsyncer.engine.hold_driver import HoldDriver
from crsyncer.engine.stopped_kinds import StoppedKinds
from tests.model.mutant import Mutant

MUTANTS = (
    Mutant(
        "a copy is deleted in whatever version it has by then",
        decide._delete,
        "exact = isinstance(own, View)",
        "exact = False",
        noticed_by="S5_1_a_copy_is_deleted_only",
    ),
    Mutant(
        "a copy that changes all the time is never deleted",
        decide._delete,
        " and not restless",
        "",
        noticed_by="S5_1_a_copy_whose_status",
    ),
    Mutant(
        "a name that is free again is noticed after the back-off",
        Cache.identify,
        "if leaving and side is self.policy.downstream:",
        "if False:",
        noticed_by="C2_5_with_naming",
    ),
    Mutant(
        "a CRD that is gone from the robot is a kind that somebody stopped",
        StoppedKinds.update,
        "missing = stopped and kind.has_crd and not has_crd",
        "missing = False",
        noticed_by="S1_8_a_crd_that_is_gone",
    ),
    Mutant(
        "that a kind is missing is found out anew after a restart",
        HoldDriver.__init__,
        "kind_wide = self._store.get_meta(self._kind_wide_name) or {}",
        "kind_wide = {}",
        noticed_by="S5_5a_a_kind_that_is_deleted_is",
    ),
    Mutant(
        "a kind that loses the verb create is alive",
        kind_served.is_terminating,
        'resource is not None and "create" not in (resource.get("verbs") or [])',
        "False",
        noticed_by="S5_5a_a_kind_that_is_only",
    ),
    Mutant(
        "what is released of a missing kind is still there, as far as is known",
        HoldDriver.release,
        "if self.holds.kind_missing and reason is HoldReason.KIND_MISSING:",
        "if False:",
        noticed_by="S5_5a_what_is_held",
    ),
    Mutant(
        "a job that has its answer ends the verification for all that wait for it",
        HoldDriver.verify,
        "if not wanted[key]:",
        "if True:",
        noticed_by="S5_5_a_job_that_has_its_answer",
    ),
    Mutant(
        "nobody is at stake when a kind is missing",
        DeletionHolds._at_stake,
        "view.stamp is not None and not view.terminating and may_delete(view, self._policy)",
        "False",
        noticed_by="S5_5a_a_kind_deleted_on_the_robot",
    ),
    Mutant(
        "who may not read a CRD asks for it for every batch",
        HoldMachine._read_crd,
        "self._crd_readable = found is not None",
        "self._crd_readable = True",
        noticed_by="S5_5b_where_crds",
    ),
    Mutant("a CRD is read whole", calls.crd, "accept=PARTIAL", "accept=JSON", noticed_by="S5_5a_whether"),
    Mutant(
        "a deletion that discovery does not vouch for is an ordinary one",
        HoldMachine._round,
        "certain = served is Served.YES",
        "certain = True",
        noticed_by="S5_5a_where_discovery_is_forbidden_one",
    ),
    Mutant(
        "the second look is at once",
        HoldMachine._round,
        "yield Pause(_SECOND_LOOK_SECONDS)",
        "pass",
        noticed_by="S5_5a_where_discovery_is_forbidden_the_last",
    ),
    Mutant(
        "a link that is cut is a refusal to list",
        HoldMachine._round,
        "yield from self._get(ProveCluster())",
        "pass",
        noticed_by="S5_5b_a_mass_deletion_whose",
    ),
    Mutant(
        "what cannot be listed is gone",
        HoldMachine._round,
        "return batch, MASS_DELETION",
        "return batch, None",
        noticed_by="S5_5b_a_mass_deletion_that_nobody",
    ),
    Mutant(
        "what is held is found out anew after a restart",
        DeletionHolds.__init__,
        "if hold is not None:",
        "if False:",
        noticed_by="S5_5b_what_is_held",
    ),
    Mutant(
        "what comes back stays held",
        DeletionHolds.unhold,
        "reason not in staying",
        "False",
        noticed_by="S5_5b_objects_that",
    ),
    Mutant(
        "a release is forgotten by a restart, or without the cloud",
        DeletionHolds.release,
        'held="", verified=True',
        'held="", verified=False',
        noticed_by="S5_5b_what_is_released",
    ),
    Mutant(
        "what upstream deletes is there until it is gone",
        DeletionHolds.verify,
        "if self.is_present(key) or",
        "if key in self.upstream or",
        noticed_by="S5_5b_a_mass_of",
    ),
    Mutant(
        "who releases by hand releases everything",
        DeletionHolds.release,
        "reason is not HoldReason.MANUAL",
        "True",
        noticed_by="S5_5_what_a_manual_hold",
    ),
    Mutant(
        "any 200 is a list",
        watch.listed_at,
        'return version if "items" in body and isinstance(version, str) else ""',
        'return str(version or "1")',
        noticed_by="S5_a_200",
    ),
    Mutant(
        "a copy is made again before its last status has gone up",
        decide._before_create,
        "if reachable and first and not pending.dead:",
        "if False:",
        noticed_by="S5_2_the_last",
    ),
    Mutant(
        "a status that still waits is no seed",
        decide._lacks_status,
        "waiting = pending is not None and",
        "waiting = False and",
        noticed_by="S5_2_S4_4",
    ),
    Mutant(
        "after a resumed watch, what neither side has is not known to be absent",
        Cache._is_absent,
        "freshness is Freshness.RESUMED and not known",
        "False",
        noticed_by="S5_an_object_that_neither",
    ),
    Mutant(
        "an orphan that is to be kept is deleted",
        decide.may_delete,
        "or not policy.keep_orphans",
        "or True",
        noticed_by="S5_3_orphans",
    ),
    Mutant(
        "a copy is an orphan like any other",
        decide.may_delete,
        "downstream.stamp is not None or not policy.keep_orphans",
        "not policy.keep_orphans",
        noticed_by="S5_3_orphans",
    ),
    Mutant(
        "a taken name can be released",
        ControlCommands._release,
        "if group.reason not in DELETION_HOLDS:",
        "if False:",
        noticed_by="S5_3_a_taken",
    ),
    Mutant(
        "a copy that downstream refuses can be dropped",
        ControlCommands._drop,
        "if row is None and key in kind.reconciler.outcomes.rejected:",
        "if False:",
        noticed_by="S3_6_a_refused_copy_can",
    ),
)

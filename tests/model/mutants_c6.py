"""Deliberate defects in what C6 promises: how copies are deleted, and what waits for that."""

from crsyncer.core import decide, decide_finalizer, finalizers, object_calls, project
from crsyncer.engine import unseen_finalizers
from crsyncer.engine.cache import Cache
from crsyncer.engine.finalizers import Finalizers
from crsyncer.engine.kinds import Kinds
from crsyncer.engine.reconciler import Reconciler
from tests.model.mutant import Mutant

MUTANTS = (
    Mutant(
        "dependents of copies always go in the background",
        object_calls.delete,
        "propagation.capitalize()",
        '"Background"',
        noticed_by="C6_5_the_policy",
    ),
    Mutant(
        "the policy overrides the annotation",
        decide._delete,
        "propagation=said or policy.propagation",
        "propagation=policy.propagation or said",
        noticed_by="C6_5_the_annotation",
    ),
    Mutant(
        "an annotation is forgotten with its object",
        Cache._original_gone,
        "if record.upstream_uid == view.uid or",
        "if False and",
        noticed_by="C6_5_the_annotation",
    ),
    Mutant(
        "any text of the annotation counts",
        project._propagation,
        "if text in PROPAGATIONS",
        "if True",
        noticed_by="C6_5_an_annotation_that",
    ),
    Mutant(
        "a copy is made before the finalizer is upstream",
        decide.decide,
        "if policy.blocking and not up.finalized:",
        "if False:",
        noticed_by="C6_1_the_finalizer",
    ),
    Mutant(
        "what is being deleted gets the finalizer",
        decide_finalizer.decide_finalizer,
        "None if up.terminating or refused",
        "None if refused",
        noticed_by="C6_1_older",
    ),
    Mutant(
        "the finalizer goes before the copy",
        decide_finalizer.decide_finalizer,
        "if (copy_gone or decided) and (pending",
        "if (pending",
        noticed_by="C6_3_upstreams",
    ),
    Mutant(
        "the finalizer goes before the last status",
        decide_finalizer.decide_finalizer,
        "if (copy_gone or decided) and (pending is None or pending.upstream_uid != up.uid):",
        "if copy_gone:",
        noticed_by="C6_3_upstreams",
    ),
    Mutant(
        "an object that no longer matches keeps its finalizer",
        decide_finalizer.decide_finalizer,
        "if row is not None and (up is Gap.ABSENT or row.since):",
        "if False:",
        noticed_by="C6_3_an_object_that_no_longer",
    ),
    Mutant(
        "a policy that no longer blocks leaves its finalizers",
        decide_finalizer.decide_finalizer,
        "if up.finalized:",
        "if False:",
        noticed_by="C6_3_the_end_of_blocking",
    ),
    Mutant(
        "a grace period has no end",
        decide_finalizer.decide_finalizer,
        "if now >= over else",
        "if False else",
        noticed_by="C6_4_the_finalizer",
    ),
    Mutant(
        "the robot's clock measures the grace period",
        Finalizers._now,
        "+ (self._connection.cluster.clock_offset or 0.0)",
        "",
        noticed_by="C6_4_the_grace_period_is_measured",
    ),
    Mutant(
        "an overdue copy is not shown",
        Cache.overdue,
        "row.overdue and",
        "False and",
        noticed_by="C6_4_the_finalizer",
    ),
    Mutant(
        "an overdue copy is forgotten with the finalizer",
        Finalizers._removed,
        "if keep else None",
        "if False else None",
        noticed_by="C6_4_the_finalizer",
    ),
    Mutant(
        "the finalizer is added to whichever version there is",
        finalizers.add_finalizer,
        '{"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},',
        "",
        noticed_by="C6_2_adding",
    ),
    Mutant(
        "a removal takes whatever is at its place",
        finalizers._removal,
        '[{"op": "test", "path": path, "value": name}, {"op": "remove", "path": path}]',
        '[{"op": "remove", "path": path}]',
        noticed_by="C6_2_two_robots",
    ),
    Mutant(
        "the finalizer is upstream before it is on disk",
        Finalizers._add,
        "await self._context.store.durable()",
        "pass",
        noticed_by="C6_2_whoever",
    ),
    Mutant(
        "a 403 is tried again as if it could pass",
        Finalizers._add,
        "if error.status != 403:",
        "if True:",
        noticed_by="C6_2_where",
    ),
    Mutant(
        "a dead letter of a finalizer has no second chance",
        Finalizers.wait,
        "self._refused_for(key) or None",
        "None",
        noticed_by="C6_2_a_dead",
    ),
    Mutant(
        "only the first place is tried out of sight",
        unseen_finalizers.remove_unseen,
        "range(_PLACES)",
        "range(1)",
        noticed_by="C6_3_an_object_that_no_longer",
    ),
    Mutant(
        "a finalizer that was not put there is looked for everywhere",
        Finalizers._add,
        "if former is None:",
        "if False:",
        noticed_by="C6_2_a_finalizer_that_was_not",
    ),
    Mutant(
        "what a lost store knew of finalizers is lost",
        Finalizers._forgotten,
        "return uid if absent and not known else",
        'return "" if absent and not known else',
        noticed_by="C6_3_an_object_that_left",
    ),
    Mutant(
        "a finalizer out of sight is looked for again and again",
        Finalizers._removed,
        "keep = overdue or bool(self._forgotten(key))",
        "keep = overdue",
        noticed_by="C6_3_an_object_that_left",
    ),
    Mutant(
        "a duplicate stays out of sight",
        unseen_finalizers.remove_unseen,
        "if row.name in left:",
        "if False:",
        noticed_by="C6_2_duplicates",
    ),
    Mutant(
        "finalizers of kinds that have stopped stay",
        Kinds._report,
        'if self._listed and self._context.store.get_meta("finalizers"):',
        "if False:",
        noticed_by="C6_3_the_end_of_the_policy",
    ),
    Mutant(
        "a removal that waits does not come back with the connection",
        Reconciler.enqueue,
        "self.consider_finalizer(key)",
        "pass",
        noticed_by="C6_3_the_finalizer_goes_when",
    ),
)

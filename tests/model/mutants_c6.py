"""Deliberate defects in what C6 promises: how copies are deleted, and what waits for that."""

from crsyncer.core import decide, object_calls, project
from crsyncer.engine.cache import Cache
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
)

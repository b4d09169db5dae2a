"""Deliberate defects in what S9 and S10 promise: connections and answers; noticed by tests named after the rules."""

from crsyncer.core import answers
from crsyncer.engine import writer
from crsyncer.engine.outcomes import Outcomes
from crsyncer.engine.writer import Writer
from tests.model.mutant import Mutant

MUTANTS = (
    Mutant(
        "a conflict that never ends is tried for ever",
        answers.lasting,
        "(unchanged and isinstance(error, Refused))",
        "False",
        noticed_by="S10_a_conflict",
    ),
    Mutant(
        "whoever may write proves that everybody may",
        Outcomes.done,
        "self.denied.pop(job, None) is not None",
        "self.denied.clear() is None",
        noticed_by="S10_403",
    ),
    Mutant(
        "a deletion that finds nothing is asked for again",
        Writer._delete,
        "unless=404",
        "unless=0",
        noticed_by="S10_a_delete",
    ),
    Mutant(
        "any 200 shows the copy that was written",
        writer._object,
        "shown(reply.body)",
        "pass",
        noticed_by="S10_a_copy",
    ),
)

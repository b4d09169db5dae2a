"""Mutants that random histories of policies have to notice."""

from crsyncer.core.apis import api_plan
from crsyncer.core.content.shape import Shape
from crsyncer.core.pair import decide, object_calls
from crsyncer.core.related import relate
from crsyncer.engine.kinds.reselection import reselect
from crsyncer.engine.pairs.outbox import Outbox
from crsyncer.engine.related.related_first import RelatedFirst
from tests.model.mutant import Mutant

POLICY_PROMISES = (
    Mutant(
        "a status takes along what others write beside the subtree",
        object_calls.patch_status,
        "value is not None and upstream is not None and not upstream.has_status",
        "value is not None",
        "neighbours",
        "beside the subtree",
    ),
    Mutant(
        "a subtree goes with the whole status of a copy",
        decide._status,
        "(policy.subtree is not None and not downstream.has_status)",
        "False",
        "whole status gone",
        "was blanked that no copy",
    ),
    Mutant(
        "a status goes to related copies that nobody wants it for",
        decide._content,
        "policy.copies_status and",
        "True and",
        "statuses not followed",
        "nobody wants that",
    ),
    Mutant(
        "with another projection everything stored is kept",
        reselect,
        "if formers:",
        "if False:",
        "another projection",
        "the copy of nothing",
    ),
    Mutant(
        "a kind whose projection was edited counts as a missing one",
        reselect,
        "if not all(map(wanted.is_in_the_same_places",
        "if False and not all(map(wanted.is_in_the_same_places",
        "nothing of that name",
        "not in agreement",
    ),
    Mutant(
        "a status shows downstream's generation",
        Outbox._value,
        "value if not self._maps else",
        "value if True else",
        "generations",
        "generation that upstream has not reached",
    ),
    Mutant(
        "a status goes up as it is",
        Shape.sent,
        "copy if self.up is None else",
        "copy if True else",
        "steps of statuses",
        "is not what the steps make",
    ),
    Mutant(
        "a copy of a related object is not where its entry says",
        relate._copy_naming,
        "related.names_namespace else",
        "False else",
        "cluster-scoped",
        "nothing ever wanted a copy there",
    ),
    Mutant(
        "a copy that is made again gets no status",
        decide._lacks_status,
        "return waiting or (upstream",
        "return False and (upstream",
        "made again",
        "it says that it is healthy",
    ),
    Mutant(
        "orphans stay whatever the policy says",
        decide.may_delete,
        "downstream.stamp is not None or not policy.keep_orphans",
        "downstream.stamp is not None",
        "orphan",
        "is an orphan",
    ),
    Mutant(
        "the copy of a primary does not wait for those of what it refers to",
        RelatedFirst.delay,
        "if not self._is_going(key) or not self.remain(key):",
        "if True:",
        "primaries in two places",
        "its related copy, is there",
    ),
    Mutant(
        "what is breaking is followed",
        api_plan._Obstacles.to,
        "found = breaking(crd, revision)",
        "found = ()",
        "breaking",
        "nobody allowed that",
    ),
)
"""Noticed by what random histories of policies are judged by (`test_policy_promises`)."""

"""Mutants that random histories of policies have to notice."""

from crsyncer.core.apis import api_plan
from crsyncer.core.content.shape import Shape
from crsyncer.core.pair import decide, object_calls
from crsyncer.core.related import relate
from crsyncer.engine.kinds.reselection import reselect
from crsyncer.engine.pairs.outbox import Outbox
from crsyncer.engine.related.related_first import RelatedFirst
from tests.model.mutants.mutant import Mutant

# fmt: off
POLICY_PROMISES = (
    Mutant("a status takes along what others write beside the subtree", object_calls.patch_status,
           "value is not None and upstream is not None and not upstream.has_status", "value is not None",
           noticed_by="neighbours", says="beside the subtree"),
    Mutant("a subtree goes with the whole status of a copy", decide._status,
           "(policy.subtree is not None and not downstream.has_status)", "False",
           noticed_by="whole status gone", says="was blanked that no copy"),
    Mutant("a status goes to related copies that nobody wants it for", decide._content,
           "policy.copies_status and", "True and",
           noticed_by="statuses not followed", says="nobody wants that"),
    Mutant("with another projection everything stored is kept", reselect,
           "if formers:", "if False:",
           noticed_by="another projection", says="is left behind"),
    Mutant("a kind whose projection was edited counts as a missing one", reselect,
           "if not all(map(wanted.is_in_the_same_places", "if False and not all(map(wanted.is_in_the_same_places",
           noticed_by="nothing of that name", says="not in agreement"),
    Mutant("a status shows downstream's generation", Outbox._value,
           "value if not self._maps else", "value if True else",
           noticed_by="generations", says="generation that upstream has not reached"),
    Mutant("a status goes up as it is", Shape.sent,
           "copy if self.up is None else", "copy if True else",
           noticed_by="steps of statuses", says="is not what the steps make"),
    Mutant("a copy of a related object is not where its entry says", relate._copy_naming,
           "related.names_namespace else", "False else",
           noticed_by="cluster-scoped", says="nothing ever wanted a copy there"),
    Mutant("a copy that is made again gets no status", decide._lacks_status,
           "return waiting or (upstream", "return False and (upstream",
           noticed_by="made again", says="it says that it is healthy"),
    Mutant("orphans stay whatever the policy says", decide.may_delete,
           "downstream.stamp is not None or not policy.keep_orphans", "downstream.stamp is not None",
           noticed_by="orphan", says="is an orphan"),
    Mutant("the copy of a primary does not wait for those of what it refers to", RelatedFirst.delay,
           "if not self._is_going(key) or not self.remain(key):", "if True:",
           noticed_by="primaries in two places", says="its related copy, is there"),
    Mutant("what is breaking is followed", api_plan._obstacle,
           "found = breaking(crd, revision)", "found = ()",
           noticed_by="breaking", says="nobody allowed that"),
)
# fmt: on
"""Noticed by what random histories of policies are judged by (`test_policy_promises`)."""

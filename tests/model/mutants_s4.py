"""Deliberate defects in what S4 promises: statuses; noticed by tests named after the rules."""

from crsyncer.core import decide, decide_delivery, object_calls, project
from crsyncer.engine import generations
from crsyncer.engine.audit import Auditor
from crsyncer.engine.cache import Cache
from crsyncer.engine.outbox import Outbox
from crsyncer.engine.status_writer import StatusWriter
from crsyncer.engine.writer import Writer
from tests.model.mutant import Mutant

MUTANTS = (
    Mutant(
        "a copy without marks is adopted with the status of a former object",
        decide._adopted,
        'record.upstream_uid in ("", upstream.uid)',
        "True",
        noticed_by="S4_1_a_copy_that_has_lost",
    ),
    Mutant(
        "a copy from the store counts as the newest",
        Outbox.take,
        "is Freshness.STORED",
        "is None",
        noticed_by="S4_1_a_stored_copy_without_its_row",
    ),
    Mutant(
        "how upstream takes a status is not remembered",
        StatusWriter.write,
        "self._remember_puts(True)",
        "pass",
        noticed_by="S4_2_where",
    ),
    Mutant(
        "a status is put over whatever version upstream has",
        object_calls.put_status,
        ', "resourceVersion": metadata["resourceVersion"]',
        "",
        noticed_by="S4_2_a_put_is",
    ),
    Mutant(
        "a whole object is put without its content",
        object_calls.put_status,
        'for k, v in upstream.items() if k != "status"',
        'for k, v in upstream.items() if k in ("apiVersion", "kind")',
        noticed_by="S4_2_a_put_without",
    ),
    Mutant(
        "a copy that bears no stamp is an orphan",
        decide.decide,
        "own = up if copy.stamp is None else upstream.of(copy.stamp.upstream_uid)",
        'own = upstream.of(copy.stamp.upstream_uid if copy.stamp else "somebody else")',
        noticed_by="S4_3_an_adopted",
    ),
    Mutant(
        "that a copy is owed a status is not written down",
        Writer._create,
        "seed=record.seed or seed",
        "seed=record.seed",
        noticed_by="S4_4_a_seed",
    ),
    Mutant(
        "who acknowledges a status owes none",
        Outbox._acknowledge,
        "seed=record.seed and (copy is None or not copy.has_status)",
        "seed=False",
        noticed_by="S4_4_a_copy_that_is_made",
    ),
    Mutant(
        "a subtree that is false is none",
        project.status_value,
        "return None if status == {} else status",
        "return status or None",
        noticed_by="S4_5_a_subtree_may",
    ),
    Mutant(
        "a status goes to an object that was given to another robot",
        object_calls.patch_status,
        "if policy.filtered:",
        "if False:",
        noticed_by="S4_2_a_status_on_its_way",
    ),
    Mutant(
        "a key is no pointer",
        object_calls.patch_status,
        "pointer_segment(policy.subtree)",
        "policy.subtree",
        noticed_by="S4_5_a_change",
    ),
    Mutant(
        "a subtree that goes takes its neighbours along",
        project.status_with,
        "if k != policy.subtree",
        "if False",
        noticed_by="S4_5_a_subtree_that_goes",
    ),
    Mutant(
        "any status is good enough",
        decide._status,
        "if downstream.odd_status:",
        "if False:",
        noticed_by="S4_5_a_downstream",
    ),
    Mutant(
        "a subtree is put into a text",
        decide_delivery.decide_delivery,
        "policy.subtree is not None and own.odd_status",
        "False",
        noticed_by="S4_5_an_upstream",
    ),
    Mutant(
        "a status is content",
        project.content_of,
        "k not in _NOT_CONTENT",
        'k not in _NOT_CONTENT - {"status"}',
        noticed_by="S4_6_without",
    ),
    Mutant(
        "what downstream completed is not known as ours",
        generations.with_generation,
        "copy.content not in (upstream.content, admitted)",
        "copy.content != upstream.content",
        noticed_by="S4_7_map_knows",
    ),
    Mutant(
        "a generation that becomes known later corrects nothing",
        generations.with_generation,
        'acknowledged="" if missed else record.acknowledged',
        "acknowledged=record.acknowledged",
        noticed_by="S4_7_map_corrects",
    ),
    Mutant(
        "a subtree is translated, too",
        Outbox._value,
        "if not self._maps else",
        "if not self._policy.map_generation else",
        noticed_by="S4_7_map_leaves",
    ),
    Mutant(
        "a translated status is never acknowledged",
        Outbox._acknowledge,
        "current = not self._maps or wire == _wire(self._value(key, row))",
        "current = not self._maps",
        noticed_by="S4_7_a_mapped",
    ),
    Mutant(
        "a new copy counts on from the old one",
        Cache._another_copy,
        "kept = record.generations if key in self.pending else ()",
        "kept = record.generations",
        noticed_by="S4_7_a_copy",
    ),
    Mutant(
        "who writes upstream is answered at once",
        decide._status,
        "lost = audit and upstream is not None",
        "lost = upstream is not None",
        noticed_by="S4_8_a_status_removed",
    ),
    Mutant(
        "an audit lists everything",
        Auditor._audit,
        "not await informer.listwatch.paged_list.agrees()",
        "True",
        noticed_by="S4_8_S9_4_an_audit_that",
    ),
    Mutant(
        "an audit finds something and does nothing",
        Auditor._audit,
        "await informer.listwatch.fresh_list(ListReason.AUDIT)",
        "pass",
        noticed_by="S4_8_S9_4_an_audit_finds",
    ),
)

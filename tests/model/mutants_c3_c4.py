"""Deliberate defects in what C3 and C4 promise: local fields of copies, and steps."""

from crsyncer.core import catalog, compose, decide, mutate, project, steps
from crsyncer.core.shape import Shape
from crsyncer.engine import generations, reshape
from crsyncer.engine.context import EngineContext
from crsyncer.engine.kinds import Kinds
from crsyncer.engine.outbox import Outbox
from crsyncer.engine.writer import Writer
from tests.model.mutant import Mutant

MUTANTS = (
    Mutant(
        "under a policy a status is content",
        project.content_of,
        "_NOT_CONTENT",
        '("apiVersion", "kind", "metadata")',
        noticed_by="C3_1_a_status",
    ),
    Mutant(
        "a pattern makes what is absent",
        mutate._compiled,
        "creates, result = False, _regex(",
        "creates, result = True, _regex(",
        noticed_by="C4_2_remove",
    ),
    Mutant(
        "an expression may have a result without a stable order",
        steps._read_cel,
        "if found:",
        "if False:",
        noticed_by="C4_3_what",
    ),
    Mutant(
        "nobody is told how to install what a policy needs",
        catalog.read_object,
        "(str(error), error.hint)",
        "(str(error),)",
        noticed_by="C4_5_without",
    ),
    Mutant(
        "local fields are drift",
        decide._content,
        "and not policy.shape.keep_local",
        "",
        noticed_by="C3_2_upstreams",
    ),
    Mutant(
        "local fields are overwritten",
        compose.compose_copy,
        "if policy.shape.keep_local:\n            merged",
        "if False:\n            merged",
        noticed_by="C3_2_upstreams",
    ),
    Mutant(
        "a copy may lose the label of the filter",
        compose.merged_fields,
        "selected_labels(labels(merged), labels(desired), policy)",
        "labels(merged)",
        noticed_by="C3_2_the_label",
    ),
    Mutant(
        "local fields hide an observed generation",
        generations.with_generation,
        "not local and",
        "",
        noticed_by="C3_2_observed",
    ),
    Mutant(
        "a switch to keepLocal writes nothing",
        project.desired_digest,
        "if policy.shape.keep_local",
        "if False",
        noticed_by="C3_3_what",
    ),
    Mutant(
        "what was applied last stays for good",
        compose.compose_copy,
        "new_annotations.pop(LAST_DESIRED, None)",
        "pass",
        noticed_by="C3_3",
    ),
    Mutant(
        "whatever an annotation says was applied last",
        compose.last_desired,
        "desired_digest(found, policy) == stamp.digest",
        "True",
        noticed_by="C3_3_without",
    ),
    Mutant(
        "an annotation may be of any size",
        compose.compose_copy,
        "if len(text) <= _LAST_DESIRED_BYTES:",
        "if True:",
        noticed_by="C3_3_more",
    ),
    Mutant(
        "a merge that guesses says nothing",
        Writer._brought_in_line,
        "log.warning(",
        "log.debug(",
        noticed_by="C3_3_more",
    ),
    Mutant(
        "steps are for views only",
        Writer._upstream,
        "self._policy.shape.desired(body)",
        "body",
        noticed_by="C4_1_a_copy",
    ),
    Mutant(
        "a status is compared as downstream has it",
        project._shaped,
        "else policy.shape.sent(raw, key)",
        "else raw",
        noticed_by="C4_1",
    ),
    Mutant(
        "the steps for a status are not carried out",
        Shape.sent,
        "copy if self.up is None else",
        "copy if True else",
        noticed_by="C4_1_a_status_goes",
    ),
    Mutant(
        "the outbox keeps what the steps of then have made",
        Outbox.take,
        "raw = self._policy.shape.up is not None and bool(action.digest)",
        "raw = False",
        noticed_by="C4_1",
    ),
    Mutant(
        "changed steps change nothing that is stored",
        reshape.reshape,
        "if former == wanted:",
        "if True:",
        noticed_by="C4_1_changed",
    ),
    Mutant(
        "a store is of the new shape before its views are",
        reshape.reshape,
        "store.put_meta(name, _UNDER_WAY)",
        "store.put_meta(name, wanted)",
        noticed_by="C4_1_a_crash",
    ),
    Mutant(
        "that views are being changed is not written down",
        reshape.reshape,
        "store.put_meta(name, _UNDER_WAY)",
        "pass",
        noticed_by="C4_1_a_crash",
    ),
    Mutant(
        "a row from before the steps lacks the rest of its copy",
        reshape._reshape,
        "if shows and row is not None",
        "if False and row is not None",
        noticed_by="C4_1_a_status_that_waits_is",
    ),
    Mutant(
        "a kind never learns of upstream's identity",
        EngineContext.identified,
        "if policy.shape.marks is None:",
        "if True:",
        noticed_by="C4_1_the_clusters",
    ),
    Mutant(
        "another cluster has the name of the former",
        Kinds._is_renamed,
        "self._context.identified(entry.kind.policy) != entry.kind.policy",
        "False",
        noticed_by="C4_1_the_clusters",
    ),
    Mutant(
        "where a step fails the object travels as it is",
        project._shaped,
        "return raw, error.where if policy.sensitive else str(error)[:_FAILURE_CHARACTERS]",
        'return raw, ""',
        noticed_by="C4_4",
    ),
    Mutant(
        "a copy goes before its successor can be made",
        decide.decide,
        "if isinstance(up, View) and up.failure and not up.terminating:",
        "if False:",
        noticed_by="C4_4_a_copy",
    ),
    Mutant(
        "a step that fails keeps a copy whose object is gone",
        decide.decide,
        "up.failure and not up.terminating",
        "up.failure",
        noticed_by="C4_4_a_copy_goes",
    ),
    Mutant(
        "a status on which a step fails is sent as it is",
        decide._status,
        "if downstream.failure:",
        "if False:",
        noticed_by="C4_4_a_status",
    ),
)

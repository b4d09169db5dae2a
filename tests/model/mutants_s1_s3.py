"""Deliberate defects in what S1 to S3 promise: kinds, objects, specs; noticed by tests named after the rules."""

from crsyncer.core import answers, decide, drift, policy, project
from crsyncer.engine.kind import Kind
from crsyncer.engine.outcomes import Outcomes
from crsyncer.engine.reconciler import Reconciler
from crsyncer.engine.writer import Writer
from tests.model.mutant import Mutant

MUTANTS = (
    Mutant("only the spec is content", project.content_of, "k not in _NOT_CONTENT", 'k == "spec"', noticed_by="S3_1"),
    Mutant(
        "what downstream pruned or added is fought",
        decide._content,
        "known.admitted if applied else upstream.content",
        "upstream.content",
        noticed_by="S3_1_a_kind",
    ),
    Mutant(
        "what others add to a copy is drift",
        project._content_digest,
        "if stamp is not None:",
        "if False:",
        noticed_by="S3_2_an_agreed",
    ),
    Mutant(
        "an update without the version that it replaces",
        project.compose_copy,
        'if k != "managedFields"',
        'if k not in ("managedFields", "resourceVersion")',
        noticed_by="S3_2_each",
    ),
    Mutant(
        "namespaces are mixed up",
        project.key_of,
        'metadata.get("namespace", "")',
        'metadata.get("namespace") and "default"',
        noticed_by="S3_2_objects",
    ),
    Mutant(
        "every kind is namespaced",
        policy.read_policy,
        'spec["scope"] == "Namespaced"',
        "True",
        noticed_by="S3_2_content",
    ),
    Mutant(
        "owners travel",
        project.compose_copy,
        '{"name": metadata["name"]}',
        '{"name": metadata["name"], "ownerReferences": metadata.get("ownerReferences")}',
        noticed_by="S3_3_what",
    ),
    Mutant(
        "the syncer's own annotations travel",
        project.synced_annotations,
        "not k.startswith((OURS, SYNCER)) and ",
        "",
        noticed_by="S3_3_excluded",
    ),
    Mutant(
        "what upstream dropped stays",
        project._three_way,
        "set(owned) - upstream.keys()",
        "set()",
        noticed_by="S3_4_labels",
    ),
    Mutant(
        "which labels are upstream's is not written on the copy",
        project.compose_copy,
        '"labels": sorted(up_labels)',
        '"labels": []',
        noticed_by="S3_4_which",
    ),
    Mutant("1.0 is not 1", project.digest, "_FLOAT.search(text)", "False", noticed_by="S3_7_the_same"),
    Mutant(
        "fractions do not count",
        project.whole_numbers,
        "isinstance(value, float) and value.is_integer()",
        "isinstance(value, float)",
        noticed_by="S3_7_values",
    ),
    Mutant(
        "drift is reverted although it is to be kept",
        decide._content,
        "drifted and not policy.keep_drift",
        "drifted",
        noticed_by="S3_5_drift_keep",
    ),
    Mutant(
        "a fight is fought for ever",
        drift.DriftLimiter.wait,
        "if len(times) == _REVERTS_A_WINDOW and",
        "if False and",
        noticed_by="S3_5_a_fight",
    ),
    Mutant(
        "a new spec waits for a fight to end",
        decide._content,
        "Why.DRIFT if applied else fresh",
        "Why.DRIFT",
        noticed_by="S3_5_a_change",
    ),
    Mutant(
        "a copy that lost our annotations is left as it is",
        decide._content,
        "if stamp is None or stamp.digest != upstream.content:",
        "if stamp is not None and stamp.digest != upstream.content:",
        noticed_by="S3_5_our",
    ),
    Mutant(
        "what a rival has made of a copy passes for what admission has",
        Writer._wrote,
        "admitted=copy.content",
        "admitted=self._cache.views[self._policy.downstream].get(key, copy).content",
        noticed_by="S3_5_a_rival",
    ),
    Mutant(
        "what is refused is no dead letter",
        answers.judge,
        "return Never(message)",
        "return Unsure(message)",
        noticed_by="S3_6_a_refused_copy_is_a",
    ),
    Mutant(
        "what was refused once is not tried again",
        Outcomes.retry_in,
        "self.refused[key].until -",
        "1e9 +",
        noticed_by="S3_6_a_refused_copy_is_asked",
    ),
    Mutant(
        "what was refused is tried again whatever happens",
        decide.decide,
        "Until.RETRY) if refused == up.content else",
        "Until.RETRY) if False else",
        noticed_by="S3_6_a_refused_copy_is_asked",
    ),
    Mutant(
        "a new schema revives nothing",
        Kind._freshness_changed,
        "self.reconciler.outcomes.refused.clear()",
        "pass",
        noticed_by="S3_6_a_change",
    ),
    Mutant(
        "a new schema revives no status",
        Reconciler.enqueue,
        "if key in self.cache.pending and",
        "if False and",
        noticed_by="S10_a_refused_status",
    ),
)

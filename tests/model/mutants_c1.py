"""Deliberate defects in what C1 promises of SyncPolicies, noticed by tests named after its rules."""

from crsyncer.core import catalog as merge
from crsyncer.core import policy_condition, project
from crsyncer.engine import negotiation
from crsyncer.engine.built_in import BuiltInKinds
from crsyncer.engine.catalog import Catalog
from crsyncer.engine.kinds import Kinds
from tests.model.mutant import Mutant

MUTANTS = (
    Mutant(
        "a kind starts by its annotations while the policies are not known",
        Kinds._show,
        "waits = self.catalog is not None and not self.catalog.is_listed",
        "waits = False",
        noticed_by="C1_1_no_kind",
    ),
    Mutant(
        "policies are looked for when the first kinds run already",
        Kinds._crd_shown,
        "if self._listed:",
        "if True:",
        noticed_by="C1_1_no_kind",
    ),
    Mutant(
        "every kind starts again when the policies are known",
        Kinds._show,
        "entry.policy == policy and",
        "False and",
        noticed_by="C1_1_a_kind_that_runs",
    ),
    Mutant(
        "the policies of a CRD that is gone stay in force",
        Kinds._crd_gone,
        "self.catalog = self._catalog_task = None",
        "pass",
        noticed_by="C1_1_when",
    ),
    Mutant(
        "the first of two policies counts",
        merge._agreed,
        "if len(objects) > 1:",
        "if False:",
        noticed_by="C1_2_two",
    ),
    Mutant(
        "a field overrules its annotation",
        merge._clashes,
        "if not same:",
        "if False:",
        noticed_by="C1_2_a_field",
    ),
    Mutant(
        "orphans of a kind that nobody has annotated are deleted",
        merge._merged,
        "{} if annotations.get(SPEC_SOURCE) and not named else",
        "{} if not named else",
        noticed_by="C1_3_a_policy_alone",
    ),
    Mutant(
        "a policy that cannot be read is none",
        Catalog._for_kind,
        "if each.is_for(resource)",
        "if each.policy and each.is_for(resource)",
        noticed_by="C1_3_a_wrong",
    ),
    Mutant(
        "a condition that may not be written is tried at every turn",
        Catalog._tell,
        "self._told.get(name) == (shown.uid, problem)",
        "False",
        noticed_by="C1_5_without_the_right",
    ),
    Mutant(
        "a condition is written although the object shows it",
        policy_condition.write_ready,
        "wanted.items() <= before.items() or ",
        "",
        noticed_by="C1_5_the_condition",
    ),
    Mutant(
        "an object is synced that the server shows although nobody has selected it",
        project.objection,
        "not policy.selects(",
        "policy.selects(",
        noticed_by="S2_1_C1_3_only",
    ),
    Mutant(
        "a kind without a CRD needs no filter",
        merge._built_in_problems,
        "if not kind.selector:",
        "if False:",
        noticed_by="C1_4_without",
    ),
    Mutant(
        "what discovery has shown of a kind is forgotten at a restart",
        BuiltInKinds.want,
        "if known:",
        "if False:",
        noticed_by="C1_4_what_discovery",
    ),
    Mutant(
        "a kind that is not served is looked for once",
        BuiltInKinds._keep,
        "if found is None:",
        "if False:",
        noticed_by="C1_4_a_kind_that_is_served_later",
    ),
    Mutant(
        "the core group is asked for like any other",
        negotiation._versions,
        "if not group:",
        "if False:",
        noticed_by="C1_4_config_maps",
    ),
    Mutant(
        "copies of policies are trusted with every kind",
        merge.not_trusted,
        "if resource not in found.untrusted:",
        "if True:",
        noticed_by="C1_6_a_policy",
    ),
    Mutant(
        "a policy whose related objects are not synced is active",
        Catalog._problem,
        "return own or related_problem(found, self._problem_of_kind)",
        "return own",
        noticed_by="C1_5_a_policy_whose",
    ),
)

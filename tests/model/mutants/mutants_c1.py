"""Deliberate defects in what C1 promises of SyncPolicies, noticed by tests named after its rules."""

from crsyncer.core.kinds import configured, policy_condition
from crsyncer.core.kinds import merge_settings as merge
from crsyncer.core.pair import project
from crsyncer.engine.kinds import negotiation
from crsyncer.engine.kinds.built_in import BuiltInKinds
from crsyncer.engine.kinds.catalog import Catalog
from crsyncer.engine.kinds.kinds import Kinds
from tests.model.mutants.mutant import Mutant

# fmt: off
MUTANTS = (
    Mutant("a kind starts by its annotations while the policies are not known", Kinds._show,
           "waits = not self.catalog.is_listed", "waits = False",
           noticed_by="C1_1_no_kind_starts_by_its_annotations_before_the_policies_are_known"),
    Mutant("policies are looked for when the first kinds run already", Kinds._crd_shown,
           "if self._listed:", "if True:",
           noticed_by="C1_1_no_kind_starts_by_its_annotations_before_the_policies_are_known"),
    Mutant("every kind starts again when the policies are known", Kinds._show,
           "entry.policy == policy and", "False and",
           noticed_by="C1_1_a_kind_that_runs_is_not_disturbed_by_the_crd_that_appears_but_a_new_one_waits"),
    Mutant("the policies of a CRD that is gone stay in force", Kinds._crd_gone,
           "self.catalog, self._catalog_task = self._new_catalog(), None", "pass",
           noticed_by="C1_1_when_the_crd_goes_the_annotations_count_again_and_kinds_without_stop"),
    Mutant("the first of two policies counts", merge._agreed,
           "if len(objects) > 1:", "if False:",
           noticed_by="C1_2_two_policies_stop_the_kind_until_one_is_gone"),
    Mutant("a field overrules its annotation", merge._clashes,
           "if not same:", "if False:",
           noticed_by="C1_2_a_field_and_an_annotation_that_differ_stop_the_kind_and_both_are_named"),
    Mutant("orphans of a kind that nobody has annotated are deleted", merge._merged,
           "{} if annotations.get(SPEC_SOURCE) and not named else", "{} if not named else",
           noticed_by="C1_3_a_policy_alone_has_an_unannotated_kind_synced_and_keeps_orphans"),
    Mutant("a policy that cannot be read hides a kind without a CRD", configured.without_crd,
           "for each in objects if each.named", "for each in objects if each.policy and each.named",
           noticed_by="C1_3_a_policy_that_cannot_be_read_does_not_hide_such_a_kind"),
    Mutant("a policy that cannot be read is none", Catalog._for_kind,
           "if each.is_for(resource)", "if each.policy and each.is_for(resource)",
           noticed_by="C1_3_a_wrong_policy_stops_its_kind_alone_with_one_line_and_copies_stay"),
    Mutant("whoever answers has written the condition", Catalog._tell,
           "shown(reply.body, status.uid)", "pass",
           noticed_by="C1_5_a_condition_that_fails_for_a_while_is_written_in_the_end"),
    Mutant("a condition that may not be written is tried at every turn", Catalog._tell,
           "self._told.get(name) == (status.uid, problem)", "False",
           noticed_by="C1_5_without_the_right_to_write_conditions_everything_else_works_and_it_is_not_tried_again"),
    Mutant("a condition is written although the object shows it", policy_condition.write_ready,
           "wanted.items() <= before.items() or ", "",
           noticed_by="C1_5_the_condition_shows_what_became_of_the_policy_and_is_written_when_it_changes"),
    Mutant("an object is synced that the server shows although nobody has selected it", project.objection,
           "not policy.selects(", "policy.selects(",
           noticed_by="S2_1_C1_3_only_what_the_selector_selects_is_synced_on_both_sides"),
    Mutant("a kind without a CRD needs no filter", merge._built_in_problems,
           "if not kind.selector:", "if False:",
           noticed_by="C1_4_without_a_filter_such_a_kind_is_misconfigured"),
    Mutant("what discovery has shown of a kind is forgotten at a restart", BuiltInKinds.want,
           "if known:", "if False:",
           noticed_by="C1_4_what_discovery_has_shown_is_remembered"),
    Mutant("a kind that is not served is looked for once", BuiltInKinds._keep,
           "if found is None:", "if False:",
           noticed_by="C1_4_a_kind_that_is_served_later_is_found"),
    Mutant("the core group is asked for like any other", negotiation._versions,
           "if not group:", "if False:",
           noticed_by="C1_4_config_maps_are_synced_like_any_kind"),
    Mutant("copies of policies are trusted with every kind", merge.not_trusted,
           "if resource not in found.untrusted:", "if True:",
           noticed_by="C1_6_a_policy_that_is_a_copy_names_kinds_without_a_crd_only_if_they_are_trusted"),
    Mutant("a policy whose related objects are not synced is active", Catalog._problem,
           "return own or related_problem(found, self._problem_of_kind)", "return own",
           noticed_by="C1_5_a_policy_whose_related_objects_are_not_synced_says_so_while_its_own_are"),
)

"""Deliberate defects in what C7 promises: kinds that have other names, or another scope, in the cloud."""

from crsyncer.core import configured, naming, object_calls, project, projection, relate, travel_names
from crsyncer.core.kind_policy import KindPolicy
from crsyncer.engine import negotiation, reselection, unseen_finalizers
from crsyncer.engine.kind import Kind
from crsyncer.engine.lifecycle import Lifecycle
from crsyncer.engine.reselection import reselect
from tests.model.mutant import Mutant

MUTANTS = (
    Mutant(
        "whatever a policy says, the cloud has the robot's names",
        projection.projected,
        "projection.resource or robots.plural",
        "robots.plural",
        noticed_by="C7_a_kind_with_other_names",
    ),
    Mutant(
        "every request is addressed as the robot names it",
        object_calls._copy,
        "policy.endpoint(policy.downstream)",
        "policy.on_robot",
        noticed_by="C7_a_kind_with_other_names",
    ),
    Mutant(
        "an object of the cloud has to be of the robot's kind",
        project.objection,
        "policy.endpoint(side)",
        "policy.on_robot",
        noticed_by="C7_a_kind_with_other_names",
    ),
    Mutant(
        "the cloud is asked in the robot's version",
        KindPolicy.cloud_version,
        "given or version",
        "version",
        noticed_by="C7_each_side_is_asked",
    ),
    Mutant(
        "the kind that discovery shows is not looked at",
        projection.discovered,
        "kind=kind, namespaced=namespaced",
        "namespaced=namespaced",
        noticed_by="C7_the_kind_is_the_one",
    ),
    Mutant(
        "a kind that is given need not be the cloud's",
        projection.discovered,
        "if given.kind and given.kind != kind:",
        "if False:",
        noticed_by="C7_what_cannot_be_followed",
    ),
    Mutant(
        "a scope that is given need not be the cloud's",
        projection.discovered,
        "if given.namespaced not in (None, namespaced):",
        "if False:",
        noticed_by="C7_a_scope_that",
    ),
    Mutant(
        "names in the other scope may clash where the policy says so",
        projection.projected,
        "scope_problem(found)",
        '""',
        noticed_by="C7_what_the_policy_alone",
    ),
    Mutant(
        "names in the other scope may clash where discovery shows it",
        projection.discovered,
        "return scope_problem(found) or found",
        "return found",
        noticed_by="C7_names_in_the_other_scope",
    ),
    Mutant(
        "every name of a copy in the cluster scope is its own",
        projection.scope_problem,
        "all(each is not None and each.name.placeholders & {NAMESPACE, HASH} for each in namings)",
        "True",
        noticed_by="C7_names_in_the_other_scope",
    ),
    Mutant(
        "any namespace is fixed",
        projection._is_fixed,
        "not own & {NAMESPACE, NAME, HASH}",
        "True",
        noticed_by="C7_names_in_the_other_scope",
    ),
    Mutant(
        "a copy in the cluster scope has a namespace",
        naming.Naming.new_name,
        'LONGEST_NAMESPACE) if namespaced else ""',
        "LONGEST_NAMESPACE)",
        noticed_by="C7_a_copy_in_the_other_scope",
    ),
    Mutant(
        "whose copy an object is, its own scope decides",
        naming.original_of,
        "bool(found.namespace) is namespaced",
        'bool(found.namespace) == bool(metadata.get("namespace"))',
        noticed_by="C7_a_restart_moves",
    ),
    Mutant(
        "each of upstream's namespaces is asked for where there are none",
        Kind.__init__,
        "in policy.places_on(side)",
        "in policy.places",
        noticed_by="C7_restricted",
    ),
    Mutant(
        "what the cloud calls a kind is forgotten",
        negotiation.to_store,
        '| {"cloud": [cloud.resource, cloud.version, cloud.kind, cloud.namespaced]}',
        "",
        noticed_by="C7_without_the_cloud",
    ),
    Mutant(
        "finalizers stay on objects that a kind does not mean any more",
        unseen_finalizers.hand_over,
        "if place is None or",
        "if True or",
        noticed_by="C7_finalizers",
    ),
    Mutant(
        "two kinds may be one in the cloud",
        configured._others,
        "return sorted(others - {resource})",
        "return []",
        noticed_by="C7_two_kinds",
    ),
    Mutant(
        "kinds of related objects may be one with another in the cloud",
        configured.names_in_cloud,
        "[found.policy, *found.policy.related]",
        "[found.policy]",
        noticed_by="C7_a_kind_of_related_objects",
    ),
    Mutant(
        "a kind that is projected to a kind with annotations takes its objects",
        configured._others,
        "others.add(shared)",
        "pass",
        noticed_by="C7_nothing_is_projected",
    ),
    Mutant(
        "related objects have the robot's names in the cloud",
        relate.related_policy,
        "return found if projection is None else projected(found, projection)",
        "return found",
        noticed_by="C7_related_objects_may_be_called",
    ),
    Mutant(
        "names of related objects in the other scope may clash",
        projection.scope_problem,
        "each.related.naming for each in policy.related",
        "each.related.naming for each in ()",
        noticed_by="C7_related_objects_of_the_robot",
    ),
    Mutant(
        "a CRD keeps its names where it travels to",
        travel_names.revision_of,
        ", project=partial(_projected, resource, api)",
        "",
        noticed_by="C8_1_a_crd_travels_to_the_names",
    ),
    Mutant(
        "the CRD of another projection is the same one",
        Lifecycle.follow,
        "(api.source, api.projection) != (before.source, before.projection)",
        "api.source is not before.source",
        noticed_by="C8_2_a_crd_by_another_projection",
    ),
    Mutant(
        "after one edit the next is not noticed before there is a cursor",
        reselect,
        "{text, *(",
        "{*(",
        noticed_by="C7_C6_3_finalizers_go_also",
    ),
    Mutant(
        "another selector forgets the finalizers",
        reselection._kept,
        "finalizers=finalizers",
        "finalizers={}",
        noticed_by="C6_3_the_policys",
    ),
)

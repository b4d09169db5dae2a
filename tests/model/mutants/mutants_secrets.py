"""Deliberate defects in what C5.6 promises of Secrets; noticed by tests named after the rule."""

from crsyncer.console.compare import cluster_diff, differences
from crsyncer.console.explained import explanation
from crsyncer.core.kinds import merge_settings
from crsyncer.core.pair import decide, project
from crsyncer.core.related import relate
from crsyncer.engine.caching.cache import Cache
from crsyncer.engine.caching.copies import Copies
from crsyncer.engine.context import EngineContext
from crsyncer.engine.pairs.writer import Writer
from crsyncer.runtime.connection import Connection
from tests.model.mutants.mutant import Mutant

# fmt: off
MUTANTS = (
    Mutant("the bodies of Secrets are stored like any others", EngineContext.storing,
           "if policy.sensitive else self", "if False else self",
           noticed_by="C5_6_secrets_are_synced_and_their_values_are_told_nowhere"),
    Mutant("explain shows what is in a Secret", explanation._shown,
           "or not policy.sensitive:", "or True:",
           noticed_by="C5_6_secrets_are_synced_and_their_values_are_told_nowhere"),
    Mutant("diff shows what is in a Secret", differences._document,
           "if policy.sensitive:", "if False:",
           noticed_by="C5_6_a_server_that_quotes_what_it_refuses_is_not_quoted"),
    Mutant("what a server says of a Secret that it refuses is told", Connection.request,
           "if call.sensitive and reply.status >= 300:", "if False:",
           noticed_by="C5_6_a_server_that_quotes_what_it_refuses_of_a_finalizer_is_not_quoted"),
    Mutant("a Secret that is known by its digest only is written", Cache.is_unknown,
           "self.policy.sensitive and key not in self._shown", "False",
           noticed_by="C5_6_offline_a_secret_is_enforced_until_the_agent_restarts"),
    Mutant("steps may make a status of a Secret", merge_settings._sensitive_problems,
           "if policy.mutations.up:", "if False:",
           noticed_by="C5_6_steps_for_the_status_of_a_sensitive_kind_are_misconfigured"),
    Mutant("a reference may read a Secret's value", merge_settings._sensitive_problems,
           "if not _LABEL.fullmatch", "if False and not _LABEL.fullmatch",
           noticed_by="C5_6_related_objects_are_not_found_by_what_is_in_a_secret"),
    Mutant("what a label of a Secret says is quoted", relate._named,
           "if entry.sensitive:", "if False:",
           noticed_by="C5_6_related_objects_of_a_secret_are_found_by_its_labels"),
    Mutant("the status at the other end of a Secret moves", project.status_value,
           "None if policy.sensitive else", "",
           noticed_by="C5_6_the_status_of_a_sensitive_kind_stays_where_it_is"),
    Mutant("the values of a kind that nobody syncs any more stay in memory", EngineContext.forget_bodies,
           "if former.sensitive and", "if False and",
           noticed_by="C5_6_a_kind_that_is_no_secret_any_more_leaves_nothing_in_memory"),
    Mutant("the digests of Secrets have no key", project._content_digest,
           ", policy.digest_key)", ")",
           noticed_by="C5_6_a_lost_key_costs_one_write_per_copy"),
    Mutant("a copy does not say that it is of a Secret", project._content_digest,
           "OF_SECRET + found if policy.sensitive else found", "found",
           noticed_by="C5_6_C1_7_no_value_is_told_of_copies_that_are_held_after_their_kind_is_no_secret_any_more"),
    Mutant("what is in the copy of a Secret is read once its kind is none any more", Cache.saw,
           "without_values(stamped or raw, self.policy, side)", "stamped or raw",
           noticed_by="C5_6_C1_7_no_value_is_told_of_copies_that_are_held_after_their_kind_is_no_secret_any_more"),
    Mutant("diff shows what is in the copy of a Secret once its kind is none any more", cluster_diff._Pairs.take,
           "without_values(raw, self.policy, side)", "raw",
           noticed_by="C5_6_C1_7_no_value_is_told_of_copies_that_are_held_after_their_kind_is_no_secret_any_more"),
    Mutant("a copy of a Secret is forgotten to be one when somebody removes its annotations", Copies.with_known_stamp,
           "_UNREADABLE_SECRET if is_of_secret else", "",
           noticed_by="C5_6_C1_7_nor_where_somebody_has_removed_what_says_that_they_are_of_secrets"),
    Mutant("a Secret of the robot's own is overwritten", decide.is_not_adopted,
           "or (policy.sensitive and", "or (False and",
           noticed_by="C2_5_a_secret_of_the_robots_own_is_adopted_only_if_it_is_equal"),
    Mutant("what has the name of a related Secret is believed to be there for ever", Writer._exists,
           " or (self._policy.related and self._is_not_adopted(write, found))", "",
           noticed_by="C2_5_a_related_secret_is_copied_once_the_secret_of_its_name_is_gone_or_equal"),
)

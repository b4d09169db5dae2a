"""Deliberate defects in the namespace map (S1.7): which side is asked for what, and what another map may cost."""

from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.pair import object_calls
from crsyncer.engine.caching.cache import Cache
from crsyncer.engine.caching.confinement import is_remapped
from crsyncer.engine.kinds.kind import Kind
from crsyncer.engine.pairs.writer import Writer
from tests.model.mutants.mutant import Mutant

# fmt: off
MUTANTS = (
    Mutant("a mapped namespace is asked for by upstream's name", object_calls.collection,
           'policy.key_on(side, Key(namespace, "")).namespace', "namespace",
           noticed_by="S1_7_mapped_namespaces_are_synced_both_ways_and_nothing_else_is_asked_for"),
    Mutant("a copy is made under upstream's key", KindPolicy.new_name,
           "self.key_on(self.downstream, key)", "key",
           noticed_by="S1_7_mapped_namespaces_are_synced_both_ways_and_nothing_else_is_asked_for"),
    Mutant("what a side calls an object is taken for its key", Cache.identify,
           "self.policy.key_of(side, key_of(raw))", "key_of(raw)",
           noticed_by="S1_7_mapped_namespaces_are_synced_both_ways_and_nothing_else_is_asked_for"),
    Mutant("a map is read the other way round", KindPolicy.key_of,
           "side, self.upstream", "self.upstream, side",
           noticed_by="S1_7_mapped_namespaces_are_synced_both_ways_and_nothing_else_is_asked_for"),
    Mutant("what a digest shows is not looked up in the map", Cache.key_of,
           "self.policy.key_of(side, key_of(raw))", "key_of(raw)",
           noticed_by="S9_4_with_a_map_a_list_by_digest_finds_what_is_known"),
    Mutant("a missing namespace is made by upstream's name", Writer._post,
           "calls.create_namespace(copy.namespace)", "calls.create_namespace(key.namespace)",
           noticed_by="S1_7_a_missing_namespace_is_made_by_the_name_that_it_has_there"),
    Mutant("another map is none of a hold's business", Kind.__init__,
           "if remapped:", "if False:",
           noticed_by="S8_3_another_map_deletes_and_overwrites_no_copy_before_a_human_says_so"),
    Mutant("another map goes unnoticed", is_remapped,
           "(store.get_meta(name) or []) == wanted", "True",
           noticed_by="S8_3_another_map_deletes_and_overwrites_no_copy_before_a_human_says_so"),
)

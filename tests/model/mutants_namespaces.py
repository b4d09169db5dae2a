"""Deliberate defects in the namespace map (S1.7): which side is asked for what, and what another map may cost."""

from crsyncer.core import compose, object_calls
from crsyncer.core.kind_policy import KindPolicy
from crsyncer.engine.cache import Cache
from crsyncer.engine.informer import Informer
from crsyncer.engine.kind import Kind
from crsyncer.runtime.collection_state import CollectionState
from tests.model.mutant import Mutant

MUTANTS = (
    Mutant(
        "a mapped namespace is asked for by upstream's name",
        object_calls.collection,
        'policy.key_on(side, Key(namespace, "")).namespace',
        "namespace",
        noticed_by="S1_7_mapped",
    ),
    Mutant(
        "a copy is made under upstream's key",
        compose.compose_copy,
        "policy.key_on(policy.downstream, key_of(desired))",
        "key_of(desired)",
        noticed_by="S1_7_mapped",
    ),
    Mutant(
        "what a side calls an object is taken for its key",
        Informer.key_of,
        "self._policy.key_of(self.side, found)",
        "found",
        noticed_by="S1_7_mapped",
    ),
    Mutant(
        "a map is read the other way round",
        KindPolicy.key_of,
        "side, self.upstream",
        "self.upstream, side",
        noticed_by="S1_7_mapped",
    ),
    Mutant(
        "what a digest shows is not looked up in the map",
        CollectionState.version_of,
        "self.handler.key_of(version.key)",
        "version.key",
        noticed_by="S9_4_with_a_map",
    ),
    Mutant(
        "a missing namespace is made by upstream's name",
        object_calls.create_namespace,
        "policy.key_on(policy.downstream, key).namespace",
        "key.namespace",
        noticed_by="S1_7_a_missing",
    ),
    Mutant(
        "another map is none of a hold's business",
        Kind.__init__,
        "if remapped:",
        "if False:",
        noticed_by="S8_3_another_map",
    ),
    Mutant(
        "another map goes unnoticed",
        Cache.is_remapped,
        "(self._store.get_meta(name) or []) == wanted",
        "True",
        noticed_by="S8_3_another_map",
    ),
)

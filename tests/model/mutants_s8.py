"""Deliberate defects against the rules of section S8: restores, rebuilds, the wrong cluster."""

from crsyncer.core import compose, identity, restore_detection
from crsyncer.core.naming import Naming
from crsyncer.engine.cache import Cache
from crsyncer.engine.kind import Kind
from crsyncer.engine.reselection import reselect
from crsyncer.runtime.cluster_identity import ClusterIdentity
from crsyncer.runtime.collection_state import CollectionState
from crsyncer.runtime.known_history import KnownHistory
from crsyncer.runtime.listwatch import ListWatch
from crsyncer.runtime.resume_check import ResumeCheck
from tests.model.mutant import Mutant

MUTANTS = (
    Mutant(
        "another selection of objects makes the agent forget how far the cluster had come",
        reselect,
        "connection.history.remember(cursor, connection.history_identity)",
        "pass",
        noticed_by="S8_3_a_restore_is_noticed",
    ),
    Mutant(
        "a restore concerns only the collection that notices it",
        KnownHistory.restored,
        "member.restored()",
        "pass",
        noticed_by="S8_3_a_restore_that_one",
    ),
    Mutant(
        "a restore concerns only the collections that are watched",
        KnownHistory.restored,
        "self._restores += 1",
        "pass",
        noticed_by="S8_3_a_kind_that_was_stopped",
    ),
    Mutant(
        "objects may be missing from a list however early",
        restore_detection.are_too_many,
        "return int(listed_at)",
        "return False and int(listed_at)",
        noticed_by="S8_3_an_object_that_is_missing",
    ),
    Mutant(
        "a write that a list shows may as well have deleted something",
        restore_detection.are_too_many,
        "cursor) - since <",
        "cursor) <",
        noticed_by="S8_3_what_is_missing_was_not_deleted",
    ),
    Mutant(
        "a list whose cursor has expired at once is followed by another one without a question",
        ListWatch._round,
        "if isinstance(step, Relist) and",
        "if False and",
        noticed_by="S8_3_a_cluster_that_takes",
    ),
    Mutant(
        "what a list shows and nobody has seen is taken for new, whatever its version",
        restore_detection.is_foreign,
        "return cursor.isdigit() and",
        "return False and",
        noticed_by="S8_3_an_object_that_a_restore",
    ),
    Mutant(
        "any CRD proves that the cluster is the same",
        identity.same_cluster,
        "if common := crds(known) & crds(found):",
        "if common := crds({}):",
        noticed_by="S8_1_where_kube",
    ),
    Mutant(
        "a CRD that was seen to be missing tells of another cluster",
        ClusterIdentity.forget_crd,
        "if name != crd(resource)",
        "if True",
        noticed_by="S8_1_a_crd",
    ),
    Mutant(
        "one CRD of another uid makes another cluster",
        identity.same_cluster,
        "return any(",
        "return all(",
        noticed_by="S8_1_one",
    ),
    Mutant(
        "weaker evidence replaces stronger",
        identity.merged,
        "{**known, **found}",
        "dict(found)",
        noticed_by="S8_1_a_right",
    ),
    Mutant(
        "a server without namespaces is the cluster that it was",
        ClusterIdentity._read,
        "elif reply.status == 404 and reply.body and KUBE_SYSTEM in self._known:",
        "elif False:",
        noticed_by="S8_1_a_server",
    ),
    Mutant(
        "a logical cluster is known by its path alone",
        identity.logical_cluster,
        "for sort, key in _ANNOTATIONS.items() if",
        "for sort, key in () if",
        noticed_by="C9_1_another",
    ),
    Mutant(
        "any history of a logical cluster is the one that was known",
        restore_detection.read_replay,
        "if same else History.OTHER",
        "",
        noticed_by="C9_2_what_is_missing",
    ),
    Mutant(
        "copies of all workspaces have the same names",
        Naming.new_name,
        "identity=identity, upstream",
        'identity="same", upstream',
        noticed_by="C9_3_agents",
    ),
    Mutant(
        "a workspace without its namespace is the one that it was",
        ClusterIdentity._read,
        "if is_young and KCP not in found:",
        "if False:",
        noticed_by="C9_1_a_workspace",
    ),
    Mutant(
        "what objects say of their workspace is not read",
        ClusterIdentity._read,
        "if self.is_logical and KCP not in found:",
        "if False:",
        noticed_by="C9_1_any_object",
    ),
    Mutant(
        "the path of a workspace is asked for at each connection",
        ClusterIdentity._read,
        "and KCP_PATH not in self._known",
        "",
        noticed_by="C9_1_copies",
    ),
    Mutant(
        "the path of a workspace is asked for only once",
        ClusterIdentity._read,
        "if KCP_PATH not in found and",
        "if not self._known and",
        noticed_by="C9_1_a_path",
    ),
    Mutant(
        "any object names the path of a workspace",
        compose.compose_copy,
        "policy.shape.path is not None and (path := policy.shape.path() or _own_path(desired))",
        "(path := policy.shape.path and policy.shape.path() or _own_path(desired))",
        noticed_by="C9_1_objects",
    ),
    Mutant(
        "every server is asked for a logical cluster",
        identity.is_logical_cluster,
        "_LOGICAL_CLUSTER.match(server) is not None",
        "True",
        noticed_by="C9_1_where_no",
    ),
    Mutant(
        "a server that repeats nothing has the same history",
        ResumeCheck._ask,
        "Replay(History.OTHER)",
        "Replay(History.SAME)",
        noticed_by="S8_2_a_kind_that",
    ),
    Mutant(
        "all wait for one collection that the server never answers for",
        ResumeCheck.prove,
        "asyncio.timeout(waits)",
        "asyncio.timeout(None)",
        noticed_by="S9_5_a_kind_that_its_server_never",
    ),
    Mutant(
        "a collection waits for the object of another as long as it takes",
        ResumeCheck._prove,
        "[(*newest, seconds)]",
        "[(*newest, None)]",
        noticed_by="S9_5_a_kind_that_its_server_never",
    ),
    Mutant(
        "a quiet kind is listed at every reconnect",
        ResumeCheck.was_listed,
        "return bool(oldest) and oldest in",
        "return False and oldest in",
        noticed_by="S8_2_S9_2",
    ),
    Mutant(
        "what upstream lost is not compared",
        Kind._freshness_changed,
        "self.reconciler.to_audit |= set(self.cache.views[self.policy.downstream])",
        "pass",
        noticed_by="S8_3_a_restored_cloud_gets_lost",
    ),
    Mutant(
        "a copy that went back in time took its status away",
        Cache.saw,
        "(known.uid != view.uid or newer(former, view.resource_version))",
        "known.uid != view.uid",
        noticed_by="S8_3_a_restored_cloud_gets_the_robots",
    ),
    Mutant(
        "a hold that holds nothing stays",
        Kind._end_restore,
        "self._hold_driver.release(HoldReason.RESTORED, ())",
        "pass",
        noticed_by="S8_3_a_restore_that",
    ),
    Mutant(
        "a hold outlives what it held",
        Kind._settled,
        "self._end_restore(settled=key)",
        "pass",
        noticed_by="S8_3_a_hold",
    ),
    Mutant(
        "a boot is nothing to speak of",
        CollectionState.rebooted,
        "return True",
        "return False",
        noticed_by="S8_4_an_ordinary",
    ),
    Mutant(
        "a boot is a restore",
        Kind._rewound,
        "if how is Rewind.REBUILT or (how is Rewind.RESTORED and upstream):",
        "if True:",
        noticed_by="S8_4_an_ordinary",
    ),
)

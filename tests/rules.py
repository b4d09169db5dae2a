"""Each numbered rule of the design and the tests that show it: `make rules`.

A test is named after its rule: `test_S4_2_...` shows S4.2, `test_S5_5a_...` a part of S5.5, `test_S3_2_S5_4_...` two,
`test_C9_1_...` C9.1. F are the rules of a fleet; those of its front door (G) are shown by tests/door alone.
A rule is shown when one of its tests runs the real engine or fleet controller, on virtual time (tests/model,
tests/fleet_model) or on real API servers (tests/system, tests/faults), in `make test`: a test that is nightly, skipped
or expected to fail shows nothing.
"""

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from crsyncer.core.reports.text import count

RULES = {
    "S1.1": "the robot's CRDs say what is synced; a change restarts that kind alone, within 2 s",
    "S1.2": "spec-source names the upstream side; none: not ours; anything else: misconfigured",
    "S1.3": "filter-by-robot-name never fails open",
    "S1.4": "status-subtree is one top-level key",
    "S1.5": "the storage version where both serve it, else the best that both serve, else a mismatch",
    "S1.6": "a kind that is missing or forbidden on a side waits, and deletes nothing",
    "S1.7": "scopes: both sorts; missing namespaces are made, never deleted; different scopes are refused",
    "S1.8": "a kind that is not ours any more leaves its copies; annotated again, it catches up",
    "S2.1": "the one selector, on list and watch of both sides; list, watch and status writes are enough",
    "S2.2": "an object that loses its label leaves our sight, and its copy goes",
    "S2.3": "on the robot, objects without the label are never touched; a taken name is held",
    "S3.1": "content is every field but metadata and status; what upstream drops is dropped",
    "S3.2": "create, guarded update, or no request at all; what is not known is waited for",
    "S3.3": "finalizers, owners and excluded annotations never travel; the copy's own stay",
    "S3.4": "labels and annotations are merged three ways",
    "S3.5": "drift is reverted, admission is not fought, a fight is slowed down and named",
    "S3.6": "what the schema refuses is kept, shown and tried again; others are not delayed",
    "S3.7": "numbers, unicode and key order survive; equality is of meaning",
    "S4.1": "the newest status, once, in order, for the very object it was meant for",
    "S4.2": "JSON Patch with a uid test; PUT where patch is refused, remembered",
    "S4.3": "a status that never was is never sent; one that is gone is removed",
    "S4.4": "a copy that is made gets upstream's status, once",
    "S4.5": "the subtree moves alone, and nothing is guessed where it cannot",
    "S4.6": "without a status subresource the main resource carries the status",
    "S4.7": "observedGeneration: verbatim, or translated, never beyond upstream's",
    "S4.8": "who writes status upstream is overruled at the next change or audit",
    "S4.9": "what upstream has already is not sent; what its schema made of it is not fought",
    "S4.10": "robots that write one object do not play ping-pong",
    "S5": "the table: what is created and deleted, by what is seen on either side",
    "S5.1": "deletes carry a uid and are propagated in the background; finalizers are waited for",
    "S5.2": "a copy deleted on its own comes back, its last status first",
    "S5.3": "orphans go or stay as annotated; in the cloud only what this robot signed is touched",
    "S5.4": "a re-created object gets a new copy; the old copy's status never reaches it",
    "S5.5": "the brake: dead kinds, mass deletions and restored clusters delete nothing unverified",
    "S6.1": "the cursor goes with the data; what cannot be replayed is on disk before the act",
    "S6.2": "a cursor never runs ahead, and is worth nothing elsewhere",
    "S6.3": "the outbox keeps the newest per object, acknowledged by number, through kill -9",
    "S6.4": "a lost database costs a relist and nothing else",
    "S6.5": "one process; bad files are set aside; a full disk stops nothing",
    "S6.6": "bodies are on disk, memory holds digests",
    "S7.1": "without the cloud the last known state is enforced, and nothing is deleted on old knowledge",
    "S7.2": "back online: deletions, specs, final statuses, periodic ones, audit",
    "S7.3": "with both sides away, hardly any CPU",
    "S8.1": "a cluster has an identity, compared on every connect",
    "S8.2": "before a resume, a cheap consistent list tells whether the cluster went back",
    "S8.3": "restored or rebuilt: lost statuses again, deletions held, strangers kept out",
    "S8.4": "the robot's own cluster goes back in time too",
    "S9.1": "one state machine a side: one probe, jitter, Retry-After",
    "S9.2": "a watch resumes after anything but a 410",
    "S9.3": "a dead connection is noticed within a minute",
    "S9.4": "lists are consistent; relists fetch a digest first",
    "S9.5": "everything at once; nothing slow delays another",
    "S10": "errors, by one question: did it happen?",
    "C1.1": "without the SyncPolicy CRD nothing differs; a change of a policy restarts that kind alone",
    "C1.2": "two policies, or a field and its annotation that differ, stop the kind; both are named",
    "C1.3": "a policy that cannot be followed stops its kind alone, and copies stay",
    "C1.4": "kinds without a CRD are as the robot's discovery shows them, and want a filter",
    "C1.5": "status and the condition Ready show what became of each policy",
    "C1.6": "SyncPolicies may themselves come from the cloud, by the annotations of their CRD",
    "C1.7": "what an edit selects no more is found by its marks, and held where it is much or where others may need it",
    "C2.1": "copies of kinds with a policy have marks, originals have none, and marks are never copied",
    "C2.2": "the store, uids, annotations and label hashes say whose copy an object is; local ones are not touched",
    "C2.3": "a copy's name is chosen once: templates, restarts and a lost store move no copy",
    "C2.4": "missing or wrong marks are repaired within 2 s, by one write that leaves the content untouched",
    "C2.5": "a taken name is adopted with its content where it is unowned, else held; so is the later of two originals",
    "C2.6": "copies of another upstream are never touched; of two copies of one original the other is held",
    "C3.1": "a status is never content, with or without the subresource",
    "C3.2": "with keepLocal upstream's changes are merged into copies, whose other fields stay",
    "C3.3": "what was applied last is on copies with keepLocal only; without it upstream's fields are set",
    "C3.4": "merges are guarded puts: no local change is lost unseen",
    "C4.1": "steps are applied on both ways, changed ones to what is stored, and nothing is listed for it",
    "C4.2": "steps that skip what is absent, and steps that set it",
    "C4.3": "the same input gives the same output; what does not compile is misconfigured",
    "C4.4": "an object on which a step fails is held, and its copy stays",
    "C4.5": "without the extra a policy with such steps is misconfigured, and says how to install it",
    "C5.1": "what a primary refers to, by reference, name or selector, goes with it; what cannot be told is reported",
    "C5.2": "related copies are where their primary's copy is, under the names of their originals or as named",
    "C5.3": "related objects are pairs like others: changes arrive without their primary, and primaries share copies",
    "C5.4": "a related copy goes with its original or its last primary, unless it is kept; originals are never touched",
    "C5.5": "the status of a related object goes to its copy where it is asked for, and never back",
    "C5.6": "Secrets are in memory only, and nobody is told their values",
    "C6.1": "with blocking the robot's finalizer is on an object before its copy is made; terminating ones get none",
    "C6.2": "finalizers are patched one by one, beside those of others; what refuses them for good has no copy",
    "C6.3": "the finalizer goes with the copy and its last status, and whenever blocking ends; until then it waits",
    "C6.4": "what a lost robot's finalizer keeps is released by the cloud's API server alone",
    "C6.5": "the policy, or else the object's annotation, says what becomes of a copy's dependents",
    "C7": "in the cloud a kind may have another group, version, name and scope; what cannot be told apart is refused",
    "C8.1": "the CRD of a kind travels as revisions that are never changed, and found again",
    "C8.2": "the CRD on the other side follows its entry, and is never deleted",
    "C8.3": "a change that breaks something is held, with its paths, and objects are synced on",
    "C8.4": "paused means no new revision; an entry edited by hand is followed",
    "C9.1": "a logical cluster of kcp is known by its ID, and its path is in every request",
    "C9.2": "a shard move costs no copy; a workspace that is away or empty deletes nothing",
    "C9.3": "each workspace has an agent of its own, whose copies have names of their own",
    "F1.1": "nothing is written before all is listed; what cannot be listed stops only what depends on it",
    "F1.2": "one controller leads by a Lease; one that cannot renew it writes nothing more, and ends",
    "F2.1": "robots are the union of selectors and names; terminating ones do not count",
    "F2.2": "sources are objects of the placement's namespace, never replicas and never objects for robots",
    "F2.3": "what is not served or not placeable is told, and its replicas stay as they are",
    "F2.4": "the oldest placement governs; when it goes, the next takes over by one write",
    "F3.1": "replicas are named after source and robot",
    "F3.2": "a replica is what has both marks and the name that they make; all else is left alone",
    "F3.3": "each write is guarded; what is refused is looked at and decided anew",
    "F3.4": "the same stamp and no drift: no request",
    "F3.5": "drift is reverted, also by a new leader; a fight is slowed down and told",
    "F3.6": "a CreateOnly replica is written once, and made again",
    "F3.7": "a taken name is refused until its label hands it over",
    "F3.8": "what is too large is refused, alone",
    "F4": "strips, overrides and properties, in this order; an error blocks one replica, which keeps its content",
    "F5.1": "replicas go at once after an edit, 5 s after their source, 30 s after their robot",
    "F5.2": "what many lose, or what proves nothing, is held until it is back or released",
    "F5.3": "the finalizer waits for replicas, never for robots; Decisions go before it",
    "F5.4": "KeepReplicas takes away the marks alone",
    "F5.5": "missing robot namespaces are made, and never changed or deleted",
    "F6.2": "a singleton's status is copied to its source, and removed when it is none any more, also after downtime",
    "F6.3": "finalizer, Decision, replica, in this order; statuses at most every 5 s",
    "F6.4": "the state of each robot, and their counts",
    "F7.1": "expressions see the source, the returned status, the robot and how far it is; endless ones are refused",
    "F7.2": "an error means not ready, is a cell's text, or leaves the row out and is listed",
    "F7.3": "an event evaluates one row; rows are sorted and limited, aggregates are as in SQL",
    "F7.4": "results are in the order of the collectors; a bad one is named, and the others go on",
    "F8.1": "a robot is begun with all its due replicas, group after group, in an order that stays",
    "F8.2": "at most maxConcurrency robots are in flight; the Decision says so before the first write",
    "F8.3": "a robot that is not Ready in time is Failed; beyond maxFailures none is begun",
    "F8.4": "offline robots keep what they have, or are written in turn; what never was Ready is replaced",
    "F8.5": "robots without reports are written in turn, and gate nothing",
    "F9.1": "a report counts that names its robot, from the robot's own namespace and shard",
    "F9.2": "it is written on change, at most every 10 s, else every 300 s",
    "F9.3": "one report carries all that a wave of replicas acknowledges",
    "F9.4": "a robot is online for 660 s after its last report, by the API server's clock",
    "F9.5": "what is applied is a digest per placement, and nothing is said before all is listed",
    "F9.6": "a robot has acknowledged what the placement has written for it, and nothing older",
    "F10.2": "replicas are written to their robot's shard, and are never moved",
    "F10.3": "shared sources are copied to each shard, where absence proves nothing; statuses are the robots' own",
    "F11": "many writes of one placement do not hold up another",
}

LAYERS = ("model", "planes", "nightly", "elsewhere")

_TOKEN = re.compile(r"([SCF]\d+)(?:_(\d+)[a-z]?)?(?=_|$)_?")


def rules_of(test: str) -> list[str]:
    """The rules that a test's name begins with. A number that is no rule belongs to the sentence: S10_409 is S10."""
    found, rest = [], test.removeprefix("test_")
    while match := _TOKEN.match(rest):
        chapter, number = match[1], match[2]
        rule = f"{chapter}.{number}" if number and f"{chapter}.{number}" in RULES else chapter
        found.append(rule)
        rest = rest[match.end() :]
    return found


def functions_in(root: Path) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """File (from the root) and syntax of every test function under `root`/tests; a parametrised one is one."""
    for path in sorted((root / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield path.relative_to(root).as_posix(), node


def layer_of(file: str, *marks: ast.expr) -> str:
    """What a test counts as: "model", "planes", "nightly" or "elsewhere", by its file and its marks."""
    named = {node.attr for mark in marks for node in ast.walk(mark) if isinstance(node, ast.Attribute)}
    if named & {"skip", "xfail", "nightly"}:
        return "nightly"
    if file.startswith(("tests/model/", "tests/fleet_model/")):
        return "model"
    return "planes" if file.startswith(("tests/system/", "tests/faults/")) else "elsewhere"


def main(root: Path) -> int:
    """Print the list; 1 when a rule is shown neither by the model nor on real planes."""
    shown: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for file, function in functions_in(root):
        marks = [mark for mark in function.decorator_list if "parametrize" not in ast.unparse(mark)]
        for rule in rules_of(function.name):
            shown[rule].append((layer_of(file, *marks), f"{file}::{function.name}"))
    bare = []
    for rule, text in RULES.items():
        tests = shown.get(rule, [])
        numbers = Counter(layer for layer, _ in tests)
        print(f"{rule:5} {text}\n      {', '.join(f'{numbers[layer]} {layer}' for layer in LAYERS)}")
        for layer, test in tests:
            print(f"        {layer:9} {test}")
        if not numbers["model"] and not numbers["planes"]:
            bare.append(rule)
    if bare:
        print(f"\nshown neither by the model nor on real planes: {', '.join(bare)}")
        return 1
    print(f"\n{count(len(RULES), 'rule')}, each shown by the model or on real planes")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parent.parent))

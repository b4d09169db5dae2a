"""The rows of the fault matrix, and where the tests are that show them."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from tests.rules import functions_in

ROWS = {
    1: "`kill -9` at every commit and after it: replays change nothing",
    2: "`kill -9` in a loop, 200 times, under load",
    3: "power cut: what was not synced is lost, the database is a prefix of what was written",
    4: "power cut in which the robot's cluster lost acknowledged writes: a new boot id has them applied again",
    5: "the cloud is absent at start, for long: it starts, queues and says so",
    6: "both sides are absent: it waits, at hardly any CPU",
    7: "the cloud is cut off while both sides change: all there within 10 s of its return, no relist",
    8: "a cut that outlasts the watch's history: 410, a digest relist, only what changed is fetched",
    9: "an idle connection goes dead without FIN or RST: noticed within 60 s",
    10: "a connection goes dead during an upload: the outbox keeps the row",
    11: "an API server stands still for two minutes: one probe per back-off, no storm afterwards",
    12: "an API server restarts and nothing of ours was written: a digest at most, no object, no write",
    13: "an API server restarts one event later: the 410 inside a 200 is recognised",
    14: "429, storage is (re)initializing: it waits, nothing is gone",
    15: "a CRD's schema is edited in the cloud: jittered digest relist, no deletes",
    16: "a CRD is deleted in the cloud: every deletion held, the copies stay",
    18: "a CRD is missing on the robot: that kind is parked until it appears",
    19: "etcd restored from a snapshot: noticed, converged, nothing skipped in silence",
    22: "the cloud rebuilt with the same names and new uids: nothing deleted unasked",
    24: "etcd is compacted during a cut: the watch resumes all the same",
    25: "deleted and made anew while offline: the old status never lands on the new object",
    27: "labelled for another robot and back: gone, silent, there again",
    28: "somebody edits the copy's spec: reverted and counted",
    29: "somebody writes the status upstream: overruled at the next change or audit, neighbours kept",
    30: "every status write of one object is refused: a dead letter, others flow",
    31: "a storm of 500 for ten minutes: backed off, outbox whole, no dead letters",
    32: "one object's request is too large, again and again: a dead letter",
    34: "a storm of 429 with Retry-After 30: no faster than that",
    35: "401, then a new token file: recovered without a restart",
    36: "403 on one kind: that kind is forbidden, nothing is deleted",
    38: "another CA, or a name that does not match: refused, and said which; nothing lost",
    39: "a watch line cut short, garbage, ten megabytes in a line: not applied, resumed, memory bounded",
    40: "chunks that end at every byte, gzip in several members or cut short: the same events",
    41: "a slow and lossy link: converges, watches stand",
    42: "a flapping link: progress is monotone, few bytes a flap, no relist",
    43: "the disk is full, then freed: said so, sync goes on, recovered",
    44: "the disk is read-only, failing or slow: the same, and nothing waits for it",
    45: "a database truncated, with flipped bits, half there or foreign: set aside whole, nothing deleted",
    47: "a database newer or older than the program: rebuilt, or migrated",
    48: "two agents with one database, or two robots with one identity: refused, or said so",
    49: "the clock jumps by days: no stall, no hot loop, said so",
    51: "1,000 robots come back at once: requests and bytes within a budget",
    52: "an outbox of 10,000 objects after a week offline: by priority, latest only, memory flat",
    53: "SIGTERM in the middle of everything: ends in time, loses nothing",
    54: "few file descriptors, little memory: it stays inside, or degrades cleanly",
}
"""By the design's numbers, which have gaps."""

_TAG = re.compile(r"fault_(\d\d)$")


@cache
def tagged(root: Path) -> dict[int, list[str]]:
    """The tests of each row, as `file::name` below `root`."""
    found: dict[int, list[str]] = defaultdict(list)
    for file, function in functions_in(root):
        for decorator in function.decorator_list:
            match = _TAG.match(decorator.attr) if isinstance(decorator, ast.Attribute) else None
            if match:
                found[int(match[1])].append(f"{file}::{function.name}")
    return found

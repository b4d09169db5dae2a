"""What is decided of a door, pure: streams to end, keys to read, what is wrong; and HAProxy's answers, read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crsyncer.door.domain.door_health import EXIT_CODES, Level, Reason, reason_of, reasons, worst
from crsyncer.door.domain.door_report import chosen_shard, door_status
from crsyncer.door.domain.haproxy_answers import (
    Server,
    Stream,
    Worker,
    map_entries,
    processes,
    refused_tokens,
    servers,
    sessions,
    streams,
    version,
)
from crsyncer.door.domain.upkeep_plan import KeyTimer, counted, has_moved, shard_users, strays
from crsyncer.errors import Never, NotAllowed, NotServed, NotTrusted, SyncError, Unsure

A = Stream("robot-a", "root", "192.0.2.1:5000")
B = Stream("robot-b", "b", "2001:db8::1:5001")
PROC = """\
#<PID>          <type>          <reloads>       <uptime>        <version>      
19940           master          2 [failed: 0]   0d00h02m20s     2.6.12-1+deb12u4
# workers
19943           worker          0               0d00h02m20s     2.6.12-1+deb12u4
# old workers
19100           worker          1               0d00h12m20s     2.6.12-1+deb12u4
19000           worker          [was: 1]        0d01h12m20s     2.6.12-1+deb12u4
# programs

"""  # noqa: W291
TABLE = """\
# table: streams, type: string, size:204800, used:3
0x7f1: key=robot-a/root/192.0.2.1:5000 use=1 exp=29999 conn_cur=1
0x7f2: key=robot-b/b/2001:db8::1:5001 use=0 exp=2 shard=0 conn_cur=2
0x7f3: key=robot-c/b/192.0.2.1:5002 use=0 exp=2 conn_cur=0
0x7f4: key=strange use=0 exp=2 conn_cur=1

"""
SESSIONS = """\
0x5581aa: proto=tcpv4 src=192.0.2.1:5000 fe=robots be=shard-root srv=root ts=00 epoch=0 age=1s calls=2 rate=0
0x5581ab: proto=tcpv6 src=2001:db8::1:5001 fe=robots be=shard-b srv=b ts=00 epoch=0 age=1s calls=2 rate=0
0x5581ac: proto=tcpv4 src=192.0.2.1:5003 fe=robots be=<NONE> srv=<none> ts=00 age=1s
0x5581ad: proto=sockpair src=unix:1 fe=GLOBAL be=<NONE> srv=<none> ts=00 epoch=0 age=0s calls=1
"""
STATE = """\
1
# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight
4 shard-root 1 root 127.0.0.1 2 0 1 1 157 8 2 0 6 0 0 0 localhost 18444 - 1 0 - - 0
5 shard-b 1 b 127.0.0.1 0 0 1 1 157 8 2 0 6 0 0 0 - 18445 - 1 0 - - 0
6 other 1 x 127.0.0.1 2 0 1 1 157 8 2 0 6 0 0 0 - 18445 - 1 0 - - 0
"""


def test_G4_3_the_workers_of_haproxy_are_read_old_ones_included():
    text = "2.6.12-1+deb12u4"
    assert processes(PROC) == (
        Worker(19943, False, text, 140),
        Worker(19100, True, text, 740),
        Worker(19000, True, text, 4_340),
    )
    assert processes("") == ()


def test_G4_3_streams_are_read_from_the_stick_table():
    assert streams(TABLE) == (A, B)
    assert sessions(SESSIONS) == {("root", A.source): "0x5581aa", ("b", B.source): "0x5581ab"}


def test_G4_1_a_map_is_read_as_haproxy_shows_it():
    assert map_entries("0x5569 robot-a root\n0x7f7f robot-b b\n\n") == {"robot-a": "root", "robot-b": "b"}
    assert map_entries("Unknown map identifier. Please use #<id> or <file>.\n") == {}


def test_G2_1_refused_tokens_are_counted():
    assert refused_tokens("# table: refused\n0x1: key=token use=0 exp=0 http_req_cnt=41\n") == 41
    assert refused_tokens("# table: refused, used:0\n") == 0


def test_G5_1_which_shards_are_up_is_read():
    assert servers(STATE) == {"root": Server(True, "127.0.0.1"), "b": Server(False, "127.0.0.1")}


def test_a_shard_that_is_down_has_moved_when_its_name_means_other_addresses():
    down, nowhere, up = Server(False, "192.0.2.1"), Server(False, "-"), Server(True, "192.0.2.1")
    assert has_moved(down, ["192.0.2.2"])
    assert has_moved(nowhere, ["192.0.2.2"])
    assert not has_moved(down, ["192.0.2.2", "192.0.2.1"])
    assert not has_moved(down, [])
    assert not has_moved(up, ["192.0.2.2"])
    assert not has_moved(None, ["192.0.2.2"])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/", (2, 6)),
        ("HA-Proxy version 2.2.9-2+deb11u6 2023/08/14", (2, 2)),
        ("HAProxy version 3.10-dev1-abc", (3, 10)),
        ("busybox", None),
    ],
)
def test_the_version_of_haproxy_is_read(text, found):
    assert version(text) == found


def test_G4_3_streams_of_robots_that_moved_or_are_gone_are_strays():
    assert strays([A, B], {"robot-a": "root", "robot-b": "b"}) == ()
    assert strays([A, B], {"robot-a": "b", "robot-b": "b"}) == (A,)
    assert strays([A, B], {"robot-b": "b"}) == (A,)
    assert strays([A, B], {}) == (A, B)


def test_G7_2_the_robots_with_streams_at_a_shard_are_named_once():
    maps = [{"robot-a": "root", "robot-b": "b"}, {"robot-b": "root"}]
    found = shard_users("root", [A, A, B], maps, is_up=True)
    assert found == {"shard": "root", "up": True, "robots": ["a"], "routed": ["a", "b"]}
    found = shard_users("c", [A, B], maps, is_up=None)
    assert found == {"shard": "c", "up": None, "robots": [], "routed": []}
    assert counted(["b", "b", "c"], ["root", "b"]) == {"root": 0, "b": 2, "c": 1}


def test_G2_1_keys_are_read_hourly_and_at_most_every_10_s_after_a_token_was_refused():
    timer = KeyTimer()
    assert timer.due(0.0)
    timer.read(0.0)
    assert not timer.due(3599.0)
    assert timer.due(3600.0)
    timer.refused({1: 0})
    assert not timer.due(20.0)
    timer.refused({1: 1})
    assert not timer.due(9.0)
    assert timer.due(10.0)
    timer.read(10.0)
    timer.refused({1: 1})  # none since
    assert not timer.due(30.0)
    timer.refused({2: 0})  # a reload: the new worker counts from zero
    assert not timer.due(30.0)
    timer.refused({2: 3})
    assert timer.due(30.0)
    timer.read(30.0)
    timer.again()
    assert (timer.due(39.0), timer.due(40.0)) == (False, True)
    timer.read(40.0)
    timer.at_once()
    assert timer.due(40.0)


def wrong(**given) -> list[Reason]:
    seen = {"labels": {}, "shards": ("root",), "up": {}, "silent": ()}
    troubles = {"haproxy": None, "unwritten": None, "root": None, "bad": (), "stale": None}
    return reasons(**{**seen, **troubles, **given})


def test_the_first_of_stopped_attention_offline_degraded_is_the_health():
    assert [EXIT_CODES[level] for level in Level] == [13, 12, 11, 10, 0]
    assert worst([]) is Level.HEALTHY
    found = wrong(
        labels={"a": "nowhere", "B": "root"},
        up={"root": True, "b": False},
        silent=[Unsure("shard b gives no keys: x")],
        haproxy=Unsure("silent", hint="h"),
        unwritten=Unsure("full"),
        root=Unsure("offline"),
        bad=["--certificate: x"],
        stale=Unsure("old"),
        differing=[SyncError("shards a and b differ", hint="h")],
        lost=2,
    )
    assert [each.code for each in found] == [
        *("BadFile", "KeysDiffer", "MapNotWritten", "RobotsLost", "RobotNotRouted", "RobotNotRouted", "HAProxySilent"),
        *("ConfigurationStale", "RootAway", "ShardDown", "ShardSilent"),
    ]
    assert worst(found) is Level.ATTENTION
    assert worst(found[6:]) is Level.OFFLINE
    assert worst(found[7:]) is Level.DEGRADED
    assert [reason_of(each.document) for each in found] == found


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (Unsure("no answer"), Level.DEGRADED),
        (NotTrusted("another authority", hint="check the CA"), Level.ATTENTION),
        (NotAllowed("refused", status=401), Level.ATTENTION),
        (NotServed("no Robots"), Level.ATTENTION),
        (Never("no RSA key"), Level.ATTENTION),
    ],
)
def test_what_does_not_heal_by_itself_needs_a_human(error: SyncError, level: Level):
    away, silent = wrong(root=error, silent=[error])
    assert [away.level, silent.level] == [level, level]
    assert all(each.hint.startswith(error.hint) for each in (away, silent))


def test_robots_that_are_not_in_the_map_are_named_up_to_a_number_and_then_counted():
    found = wrong(labels={f"r{number:03}": "nowhere" for number in range(100)})
    assert len(found) == 21
    assert found[-1].message == "80 more robots are not in the map"


def test_the_document_of_a_door_says_what_is_known_and_null_for_the_rest():
    workers = [Worker(1, False, "2.6.12"), Worker(2, True, "2.6.12")]
    routes = {"robot-a": "root", "robot-b": "b", "robot-c": "b"}
    servers = {"root": "https://r", "b": "https://b"}
    up = {"root": True, "b": False}
    found = door_status(servers, routes, [], workers=workers, up=up, streams=[A, B, B], robot="b")
    assert found["haproxy"] == {"version": "2.6.12", "workers": 2}
    assert found["shards"] == [
        {"name": "root", "server": "https://r", "state": "up", "robots": 1, "streams": 1},
        {"name": "b", "server": "https://b", "state": "down", "robots": 2, "streams": 2},
    ]
    assert found["robot"] == {"name": "b", "shard": "b", "streams": 2}
    assert (found["schema"], found["health"]) == ("crsyncer.door-status/v1", "healthy")
    unknown = door_status(servers, {}, wrong(root=Unsure("x")), workers=[], up={}, streams=None, robot="z")
    assert unknown["haproxy"] == {"version": None, "workers": None}
    assert {each["state"] for each in unknown["shards"]} == {each["streams"] for each in unknown["shards"]} == {None}
    assert unknown["robot"] == {"name": "z", "shard": None, "streams": None}
    assert unknown["health"] == "degraded"


NAMES = [f"robot-{number}" for number in range(1000)]


def test_G7_4_a_thousand_robots_are_spread_within_20_percent_and_stay_when_a_shard_is_added():
    three = {name: chosen_shard(name, ["a", "b", "c"]) for name in NAMES}
    counts = counted(three.values(), ["a", "b", "c"])
    assert all(abs(number - 1000 / 3) <= 0.2 * 1000 / 3 for number in counts.values()), counts
    four = {name: chosen_shard(name, ["a", "b", "c", "d"]) for name in NAMES}
    assert all(four[name] in (three[name], "d") for name in NAMES)
    assert abs(counted(four.values(), [])["d"] - 250) <= 50


@given(shards=st.lists(st.sampled_from("abcdef"), min_size=1, unique=True), name=st.sampled_from(NAMES))
def test_G7_4_the_order_of_the_shards_does_not_matter(shards: list[str], name: str):
    assert chosen_shard(name, shards) == chosen_shard(name, sorted(shards)) in shards

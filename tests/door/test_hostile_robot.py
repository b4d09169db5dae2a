"""Three robots at the door, of which r1 is hostile: nothing foreign is read or written, and nothing refused goes on."""

import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from crsyncer.adapters.retries import until
from tests.door.conftest import Audited
from tests.door.open_door import OpenDoor, Told, Watch
from tests.door.tokens import FORGERIES, FRAMINGS, Forger, later, new_key, subject
from tests.system.confined import at, thing

NUMBERS = itertools.count(1)
GOALS = at("goals", "robot-r1")
FOREIGN = at("goals", "robot-r2")
SECRET = "pear-of-r2"


@pytest.fixture(scope="module")
def treasure(audited: Audited) -> Iterator[dict]:
    """What r1 is after: an object of r2, which is as it was at the end."""
    made = audited.cloud.create("goals", "r2", spec={"secret": SECRET})
    yield made
    assert audited.cloud.now(made) == made


@pytest.fixture
def marker() -> str:
    """A text that only one request has."""
    return f"marker-{next(NUMBERS)}-of-a-test"


@pytest.fixture
def token(audited: Audited) -> str:
    return audited.cloud.robots["r1"].token


def marked(path: str, marker: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}marker={marker}"


def is_refused(told: Told, status: int, audited: Audited, marker: str) -> None:
    """Assert that the door itself answered, that it showed nothing, and that the API server never heard of it."""
    assert told.status == status, told
    assert '"kind": "Status"' in told.text, told
    assert SECRET not in told.text
    assert not audited.heard_of(marker)


@pytest.mark.parametrize("forgery", FORGERIES)
def test_G2_1_a_token_that_is_not_a_robots_is_401_and_goes_no_further(
    forgery, door: OpenDoor, audited: Audited, token: str, marker: str, tmp_path: Path
):
    made = FORGERIES[forgery](Forger(token, audited.plane.key_file, new_key(tmp_path / "theirs.key")))
    told = door.ask(marked(GOALS, marker), made)
    is_refused(told, 401, audited, marker)
    assert told.closed


@pytest.mark.parametrize(
    "headers",
    [
        (),
        ("Authorization: Basic cjE6cjE=",),
        ("Authorization: Bearer",),
        ("Authorization: bearer",),
        ("Authorization: Bearer {good}", "Authorization: Bearer {good}"),
        ("Authorization: Bearer x", "Authorization: Bearer {good}"),
        ("Authorization: Bearer {good} x",),
        ("Authorization: Bearer  {good}",),
        ("Authorization: Bearer\r\n {good}",),
        ("Authorization: Bearer {good},x",),
        ("X-Authorization: Bearer {good}",),
        ("Cookie: token={good}",),
        ("Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.{good}",),
    ],
)
def test_G2_1_without_one_sound_token_a_request_is_401(headers, door: OpenDoor, audited: Audited, token, marker):
    told = door.ask(marked(GOALS, marker), None, headers=[each.format(good=token) for each in headers])
    is_refused(told, 401, audited, marker)


def test_G2_1_a_token_in_the_query_is_none(door: OpenDoor, audited: Audited, token: str, marker: str):
    is_refused(door.ask(marked(f"{GOALS}?access_token={token}", marker), None), 401, audited, marker)


def test_G2_1_a_good_token_reaches_the_server_which_sees_the_robot(door, audited, token, marker):
    told = door.ask(marked(GOALS, marker), token)
    assert told.status == 200, told
    assert not told.closed

    def completed() -> list[str]:
        return [each for each in audited.log.read_text().splitlines() if marker in each and "ResponseComplete" in each]

    [line] = until(completed, seconds=60)
    assert '"username":"system:serviceaccount:robot-r1:crsyncer"' in line
    assert '"sourceIPs":["127.0.0.1"' in line


def test_G2_1_an_enrolling_account_gets_tokens_for_its_own_robot_and_nothing_else(
    door: OpenDoor, audited: Audited, token: str, marker: str, tmp_path: Path
):
    forger = Forger(token, audited.plane.key_file, tmp_path / "none.key")
    enroller = forger.signed(sub=subject("r1", "crsyncer-enroll"), exp=None)
    own = "/api/v1/namespaces/robot-r1/serviceaccounts/crsyncer/token"
    body = b'{"spec": {"expirationSeconds": 600}}'
    # Nobody has such rights here: the API server's own 403 shows that the request went there.
    told = door.ask(marked(own, marker), enroller, method="POST", body=body)
    assert told.status == 403, told
    assert "is forbidden: User" in told.text
    for number, (method, path) in enumerate(
        [
            ("GET", own),
            ("POST", own.replace("robot-r1", "robot-r2")),
            ("POST", own.replace("/crsyncer/", "/default/")),
            ("POST", f"{own}/"),
            ("POST", f"{own}/x"),
            ("POST", GOALS),
            ("PUT", own),
        ]
    ):
        text = f"{marker}-{number}"
        is_refused(door.ask(marked(path, text), enroller, method=method, body=body), 401, audited, text)
    late = forger.signed(sub=subject("r1", "crsyncer-enroll"), exp=later(-5))
    is_refused(door.ask(marked(own, f"{marker}-late"), late, method="POST", body=body), 401, audited, f"{marker}-late")


@pytest.mark.parametrize(
    "path",
    [
        "/apis/confined.example.com/v1/namespaces/robot-r1%2Fgoals",
        "/apis/confined.example.com/v1/namespaces/robot-r1/%2e%2e/robot-r2/goals",
        "/apis/confined.example.com/v1/namespaces/robot-r1/../robot-r2/goals",
        "/apis/confined.example.com/v1/namespaces/robot-r1/./goals",
        "/apis/confined.example.com/v1/namespaces/robot-r1/goals/..",
        "/apis/confined.example.com/v1/namespaces/robot-r1/goals/.",
        "//apis/confined.example.com/v1/namespaces/robot-r2/goals",
        "/apis/confined.example.com/v1/namespaces//robot-r2/goals",
        "/apis/confined.example.com/v1/namespaces/robot-r1;/goals",
        "/%61pis/confined.example.com/v1/namespaces/robot-r2/goals",
        "/apis/confined.example.com/v1/namespaces/robot-r1%00/goals",
    ],
)
def test_G3_1_a_path_that_two_programs_may_read_differently_is_400(path, door, audited, token, marker):
    is_refused(door.ask(marked(path, marker), token), 400, audited, marker)


@pytest.mark.parametrize("path", ["*", "apis", "http://x/apis%2F", "robot-r2"])
def test_G3_1_a_target_that_is_no_path_is_400(path, door, audited, token, marker):
    told = door.ask(path, token, headers=[f"User-Agent: {marker}"])
    assert told.status == 400, told
    assert not audited.heard_of(marker)


@pytest.mark.parametrize("wanted", ["websocket", "SPDY/3.1", "h2c", "tcp"])
def test_G3_1_an_upgrade_is_400(wanted, door, audited, token, marker):
    headers = ["Connection: Upgrade", f"Upgrade: {wanted}", "Sec-WebSocket-Key: x", "HTTP2-Settings: AAMAAABkAAQAAP__"]
    told = door.ask(marked(GOALS, marker), token, headers=headers)
    assert told.status == 400, told
    assert not audited.heard_of(marker)


@pytest.mark.parametrize("name", ["X_Remote_User", "Impersonate_User", "X.Remote", "X~Y", "Accept!"])
def test_G3_1_an_odd_header_name_is_403(name, door, audited, token, marker):
    is_refused(door.ask(marked(GOALS, marker), token, headers=[f"{name}: r2"]), 403, audited, marker)


@pytest.mark.parametrize(
    "headers",
    [
        ("Impersonate-User: system:serviceaccount:robot-r2:crsyncer",),
        ("impersonate-user: admin", "IMPERSONATE-GROUP: system:masters", "Impersonate-Uid: 1"),
        ("Impersonate-Extra-Scopes: x", "Impersonate-User: admin"),
        ("X-Remote-User: admin", "X-Remote-Group: system:masters", "x-remote-extra-y: z"),
    ],
)
def test_G3_1_nobody_is_somebody_else(headers, door, audited, token, treasure, marker):
    own = door.ask(marked(GOALS, marker), token, headers=headers)
    assert own.status == 200, own
    foreign = door.ask(marked(FOREIGN, marker), token, headers=headers)
    assert foreign.status == 403, foreign
    assert SECRET not in foreign.text
    assert until(lambda: audited.heard_of(marker), seconds=60)
    lines = [each for each in audited.log.read_text().splitlines() if marker in each]
    assert all('"username":"system:serviceaccount:robot-r1:crsyncer"' in each for each in lines)
    assert not any("impersonatedUser" in each for each in lines)


def test_G3_2_the_audit_log_has_the_address_of_the_robot_and_not_what_it_says(door, audited, token, marker):
    headers = ["X-Forwarded-For: 192.0.2.66", "X-Forwarded-For: 192.0.2.67, 192.0.2.68", "X-Real-IP: 192.0.2.69"]
    assert door.ask(marked(GOALS, marker), token, headers=headers).status == 200
    assert until(lambda: audited.heard_of(marker), seconds=60)
    lines = [each for each in audited.log.read_text().splitlines() if marker in each]
    assert lines
    assert not any("192.0.2.6" in each for each in lines)


def test_G3_2_queries_bodies_and_answers_pass_as_they_are(door: OpenDoor, audited: Audited, token: str, marker: str):
    made = audited.cloud.create("goals", "r1")
    query = (
        f"labelSelector=cloudrobotics.com%2Frobot-name%3Dr1&fieldSelector=metadata.name%3D{made['metadata']['name']}"
    )
    told = door.ask(marked(f"{GOALS}?{query}&x=//../%2F", marker), token)
    assert told.status == 200, told
    assert made["metadata"]["uid"] in told.text
    wrong = door.ask(f"{GOALS}?labelSelector=%2F%2F..%3B", token)
    assert (wrong.status, '"kind":"Status"' in wrong.text) == (400, True), wrong


SMUGGLED = "GET {path} HTTP/1.1\r\nHost: door\r\nX-Inner: 1\r\n\r\n"


@pytest.mark.parametrize("framing", FRAMINGS)
def test_G3_1_a_request_within_a_request_is_never_one_of_somebody_else(
    framing, door: OpenDoor, audited: Audited, token: str, treasure: dict, marker: str
):
    inner = SMUGGLED.format(path=marked(FOREIGN, marker))
    body = f"0\r\n\r\n{inner}"
    head = f"POST {GOALS} HTTP/1.1\r\nHost: door\r\nAuthorization: Bearer {token}\r\n"
    told = door.send(f"{head}{framing.format(length=len(body))}\r\n\r\n{body}".encode(), seconds=5)
    assert SECRET not in told.text
    # Whoever comes next on a connection to the API server gets his own answer.
    for name in ("r2", "r3"):
        next_one = door.ask(at("goals", f"robot-{name}"), audited.cloud.robots[name].token)
        assert next_one.status == 200, next_one
    assert not audited.heard_of(marker)


def test_G3_1_a_second_request_on_a_connection_needs_a_token_too(door, audited, token, treasure, marker):
    first = f"GET {GOALS} HTTP/1.1\r\nHost: door\r\nAuthorization: Bearer {token}\r\n\r\n"
    second = SMUGGLED.format(path=marked(FOREIGN, marker))
    told = door.send((first + second).encode(), ends=["door does not accept this token"])
    assert "HTTP/1.1 200" in told.text
    assert "HTTP/1.1 401" in told.text
    assert told.closed
    assert not audited.heard_of(marker)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", FOREIGN),
        ("GET", f"{FOREIGN}?watch=true"),
        ("HEAD", FOREIGN),
        ("OPTIONS", FOREIGN),
        ("GET", at("goals")),
        ("GET", f"{at('goals')}?labelSelector=cloudrobotics.com/robot-name=r1"),
        ("GET", f"{at('goals')}?fieldSelector=metadata.namespace=robot-r1"),
        ("GET", at("goals").replace("/v1/", "/v1/watch/")),
        ("DELETE", FOREIGN),
        ("POST", FOREIGN),
        ("GET", "/api/v1/namespaces/robot-r2/secrets"),
        ("GET", "/api/v1/namespaces/robot-r1/secrets"),
        ("GET", "/api/v1/namespaces/robot-does-not-exist/secrets"),
        ("GET", "/apis/registry.cloudrobotics.com/v1alpha1/namespaces/default/robots"),
        ("GET", "/apis/registry.cloudrobotics.com/v1alpha1/robots"),
        ("POST", "/api/v1/namespaces/robot-r2/serviceaccounts/crsyncer/token"),
        ("GET", "/metrics"),
        ("GET", "/logs/"),
        ("PATCH", f"{FOREIGN}/x/status"),
    ],
)
def test_G8_whatever_is_foreign_is_403(method, path, door: OpenDoor, audited: Audited, token: str, treasure: dict):
    body = b"{}" if method in ("POST", "PATCH", "PUT") else b""
    headers = ["Connection: close"] if method == "HEAD" else []
    told = door.ask(path, token, method=method, body=body, headers=headers)
    assert told.status == 403, told
    assert SECRET not in told.text


def test_G8_nothing_foreign_is_written(door: OpenDoor, audited: Audited, token: str, treasure: dict):
    name = treasure["metadata"]["name"]
    for path in (f"{FOREIGN}/{name}", f"{FOREIGN}/{name}/status"):
        body = b'[{"op": "add", "path": "/status", "value": {"stolen": true}}]'
        patch = ["Content-Type: application/json-patch+json"]
        told = door.send(
            f"PATCH {path} HTTP/1.1\r\nHost: door\r\nAuthorization: Bearer {token}\r\n{patch[0]}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        assert told.status == 403, told
    stray = thing("goals", "robot-r1", "stray", "r2")
    told = door.ask(GOALS, token, method="POST", body=repr(stray).replace("'", '"').encode())
    assert told.status == 403, told
    assert audited.cloud.now(treasure) == treasure


def test_G6_a_head_above_16_kib_is_400(door: OpenDoor, audited: Audited, token: str, marker: str):
    small = door.ask(GOALS, token, headers=[f"X-Filler: {'a' * (14_000 - len(token))}"])
    assert small.status == 200, small
    for size in (17_000, 40_000, 200_000):
        told = door.ask(GOALS, token, headers=[f"X-Filler: {'a' * size}", f"User-Agent: {marker}"])
        assert told.status in (0, 400), told
        assert told.closed
    assert not audited.heard_of(marker)


def test_G6_a_head_that_takes_longer_than_10_s_is_408(door: OpenDoor, audited: Audited, token: str, marker: str):
    began = time.monotonic()
    told = door.send(f"GET {marked(GOALS, marker)} HTTP/1.1\r\nAuthorization: ".encode(), seconds=60)
    assert (told.status, told.closed) == (408, True), told
    assert time.monotonic() - began > 9
    assert not audited.heard_of(marker)


def test_G6_a_robot_that_floods_is_limited_and_the_others_are_not(door: OpenDoor, audited: Audited, token: str):
    flood = f"GET /version HTTP/1.1\r\nHost: door\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    # A slow server does not answer 200 in 10 s: then once more.
    told = until(
        lambda: door.send(flood * 260, ends=["than 200 in 10 s"], seconds=15),
        lambda told: "HTTP/1.1 429" in told.text,
        seconds=60,
    )
    assert "HTTP/1.1 200" in told.text
    assert told.text.count("HTTP/1.1 429") == 1  # the next one is a second later, or they would take HAProxy's CPU
    assert "retry-after: " in told.text.lower()
    for name in ("r2", "r3"):
        told = door.ask(at("goals", f"robot-{name}"), audited.cloud.robots[name].token)
        assert told.status == 200, told
    assert until(lambda: door.ask("/version", token).status == 200, seconds=60)


def test_G6_a_robot_has_32_requests_in_progress(door: OpenDoor, audited: Audited):
    token = audited.cloud.robots["r3"].token
    watch = f"{at('goals', 'robot-r3')}?watch=true&timeoutSeconds=60"
    request = f"GET {watch} HTTP/1.1\r\nHost: door\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    open_ones = []
    try:
        for _ in range(32):
            channel = door.connect()
            channel.settimeout(60)
            channel.sendall(request)
            assert b"200 OK" in channel.recv(4096)
            open_ones.append(channel)
        told = door.send(request, ends=["requests in progress"])
        assert told.status == 429, told
        assert door.ask(at("goals", "robot-r2"), audited.cloud.robots["r2"].token).status == 200
    finally:
        for channel in open_ones:
            channel.close()
    assert until(lambda: door.ask("/version", token).status == 200, seconds=60)


def test_G2_1_G2_2_a_storm_of_forged_tokens_ends_no_stream_and_uses_up_no_limit_of_others(
    door: OpenDoor, audited: Audited, token: str, tmp_path: Path
):
    victim = audited.cloud.robots["r2"].token
    watch = f"{at('goals', 'robot-r2')}?watch=true&timeoutSeconds=120"
    forger = Forger(token, audited.plane.key_file, new_key(tmp_path / "theirs.key"))
    forged = forger.signed(key=forger.theirs, sub=subject("r2"))
    streams = []
    try:
        for _ in range(10):
            channel = door.connect()
            channel.settimeout(60)
            channel.sendall(f"GET {watch} HTTP/1.1\r\nHost: door\r\nAuthorization: Bearer {victim}\r\n\r\n".encode())
            assert b"200 OK" in channel.recv(4096)
            streams.append(channel)
        with ThreadPoolExecutor(8) as many:
            told = list(many.map(lambda _: door.ask(GOALS, forged).status, range(400)))
        assert set(told) == {401}
        assert door.ask(at("goals", "robot-r2"), victim).status == 200
        audited.cloud.create("goals", "r2")
        assert all(b"ADDED" in channel.recv(65536) for channel in streams)
    finally:
        for channel in streams:
            channel.close()


def test_G5_2_a_robot_that_hangs_up_leaves_no_watch_at_the_api_server(door, audited, token, marker):
    def ended() -> bool:
        lines = [each for each in audited.log.read_text().splitlines() if marker in each]
        return any('"stage":"ResponseComplete"' in each for each in lines)

    watch = Watch(door, marked(GOALS, marker), token)
    assert until(lambda: audited.heard_of(marker), seconds=60)
    assert not ended()
    watch.close()
    assert until(ended, seconds=60)


def test_G3_1_http_2_is_not_spoken(door: OpenDoor, audited: Audited):
    told = door.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0" * 9)
    assert told.status in (0, 400, 401, 505), told
    assert told.closed

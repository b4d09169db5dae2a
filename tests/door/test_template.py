"""HAProxy accepts what random settings make, and refuses nothing that the door takes; keys, map and answers, pure."""

import asyncio
import json
import string
import subprocess
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from crsyncer.core.content.annotations import SHARD_LABEL
from crsyncer.door.domain.door_values import FrontDoor, Shard, SigningKey
from crsyncer.door.domain.haproxy_template import haproxy_files, keys_in, shard_in
from crsyncer.door.domain.robots_map import changes, map_text, read_map, routes, shard_label, unroutable
from crsyncer.door.domain.signing_keys import differing_keys, keys_of, merged_keys
from crsyncer.door.door_files import MAP, put_files, put_map, try_configuration
from crsyncer.door.haproxy_program import check_configuration
from crsyncer.errors import SyncError
from tests.adapters.kube_server import make_certificates
from tests.door.programs import haproxy
from tests.door.tokens import new_key, public_jwk

LABELS = st.from_regex("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
HOSTS = st.one_of(
    st.ip_addresses().map(str), st.sampled_from(["localhost", "a.example.com", "x-1.y.svc", "kubernetes.default.svc"])
)
KIDS = st.text(string.ascii_letters + string.digits + "-_", min_size=1, max_size=60)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = make_certificates(tmp_path_factory.mktemp("issuer"))
    return "".join(each.read_text() for each in made.issue("door"))


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    home = tmp_path_factory.mktemp("keys")
    return [public_jwk(new_key(home / f"{bits}.key", bits=bits), "k") for bits in (1024, 2048, 3072)]


@given(data=st.data())
@settings(max_examples=40, phases=[Phase.generate])  # to shrink takes minutes: HAProxy starts each time
def test_G2_G6_haproxy_accepts_every_configuration_that_random_settings_make(
    data, certificate: str, keys: list[dict], tmp_path_factory: pytest.TempPathFactory
):
    home = tmp_path_factory.mktemp("door")
    authority = certificate[: certificate.index("-----BEGIN EC") if "-----BEGIN EC" in certificate else None]
    names = data.draw(st.lists(LABELS.filter(lambda name: name != "root"), unique=True, max_size=6))
    shards = tuple(
        Shard(
            name,
            data.draw(HOSTS),
            data.draw(st.integers(1, 65535)),
            data.draw(st.sampled_from(["kubernetes.default.svc", "a.example.com"])),
            data.draw(st.sampled_from(["", authority])),
            data.draw(st.booleans()),
        )
        for name in ("root", *names)
    )
    kids = data.draw(st.lists(KIDS, min_size=1, max_size=6, unique=True))
    found = keys_of({"keys": [data.draw(st.sampled_from(keys)) | {"kid": kid} for kid in kids]})
    assert [key.kid for key in found] == kids
    bind = (data.draw(st.sampled_from(["*", "127.0.0.1", "::", "::1"])), data.draw(st.integers(1, 65535)))
    exporter = data.draw(st.sampled_from([None, ("127.0.0.1", 8404), ("*", 8404), ("::1", 1)]))
    door = FrontDoor(str(home), bind, certificate, shards, found, exporter)
    labels = data.draw(st.dictionaries(LABELS, st.sampled_from(["root", *names, "unknown"]), max_size=10))
    text = map_text(routes(labels, ("root", *names)))
    asyncio.run(try_configuration(door, text, program=str(haproxy())))
    put_map(home, text)
    assert put_files(door)
    assert not put_files(door)
    assert {each.name for each in home.iterdir()} == {*haproxy_files(door), MAP}
    assert tuple(shard_in(haproxy_files(door), each.name) for each in shards) == shards
    check: list[str | Path] = [haproxy(), "-c", "-q", "-f", home / "haproxy.cfg"]
    assert subprocess.run(check, capture_output=True).returncode == 0


def test_G2_1_files_of_former_keys_and_shards_go_and_others_stay(certificate: str, keys: list[dict], tmp_path: Path):
    key, other = (SigningKey(kid, keys_of({"keys": [keys[1] | {"kid": kid}]})[0].pem) for kid in ("a", "-b"))
    shard = Shard("root", "127.0.0.1", 443, "localhost", certificate)
    door = FrontDoor(str(tmp_path), ("*", 8443), certificate, (shard, Shard("b", "::1", 443, "x", certificate)), (key,))
    (tmp_path / "mine.txt").write_text("kept")
    put_files(door)
    assert {"key-a.pub", "shard-b.pem", "mine.txt"} <= {each.name for each in tmp_path.iterdir()}
    assert {each.stat().st_mode & 0o777 for each in tmp_path.iterdir() if each.name != "mine.txt"} == {0o600}
    assert put_files(FrontDoor(str(tmp_path), ("*", 8443), certificate, (shard,), (other,)))
    assert {"key--b.pub", "mine.txt"} <= {each.name for each in tmp_path.iterdir()}
    assert not {"key-a.pub", "shard-b.pem"} & {each.name for each in tmp_path.iterdir()}


def test_what_haproxy_has_against_a_configuration_is_told(certificate: str, tmp_path: Path):
    shard = Shard("root", "127.0.0.1", 443, "localhost")
    put_files(FrontDoor(str(tmp_path), ("*", 8443), certificate, (shard,), ()))
    put_map(tmp_path, "")
    (tmp_path / "503.http").unlink()
    assert shard_in({}, "root") is None
    with pytest.raises(SyncError, match=r"error opening file '.*/503\.http'") as caught:
        asyncio.run(check_configuration(tmp_path / "haproxy.cfg", str(haproxy())))
    assert "\n" not in str(caught.value)


def test_a_directory_that_cannot_be_written_is_one_line(certificate: str, tmp_path: Path):
    (tmp_path / "file").touch()
    for home in (tmp_path / "file/door", Path("/proc/door")):
        door = FrontDoor(str(home), ("*", 1), certificate, (Shard("root", "h", 1, "h"),), ())
        for write in (
            lambda home=home: put_map(home, "x"),
            lambda door=door: put_files(door),
            lambda door=door: asyncio.run(try_configuration(door, "", program=str(haproxy()))),
        ):
            with pytest.raises(SyncError, match=rf"{home} cannot be written \(") as caught:
                write()
            assert "\n" not in str(caught.value)


def test_G4_2_every_answer_of_the_door_is_a_status(certificate: str):
    door = FrontDoor("/d", ("*", 1), certificate, (Shard("root", "h", 1, "h"),), ())
    answers = {name: text for name, text in haproxy_files(door).items() if name.endswith(".http")}
    assert sorted(answers) == [f"{status}.http" for status in (400, 401, 403, 408, 429, 500, 502, 503, 504)]
    for name, text in answers.items():
        head, _, body = text.partition("\r\n\r\n")
        content = json.loads(body)
        status = int(name.removesuffix(".http"))
        assert head.startswith(f"HTTP/1.1 {status} ")
        assert f"Content-Length: {len(body)}" in head.split("\r\n")
        assert (content["kind"], content["status"], content["code"]) == ("Status", "Failure", status)
        assert ("Retry-After: 10" in head.split("\r\n")) == (status in (429, 502, 503, 504))
    assert "Connection: close" in answers["401.http"]


@pytest.mark.parametrize("bits", [1024, 1536, 2047, 2048, 3072, 4096])
def test_G2_1_a_jwk_becomes_the_pem_that_openssl_writes(bits: int, tmp_path: Path):
    private = new_key(tmp_path / "private.key", bits=bits)
    public = subprocess.run(["openssl", "rsa", "-in", private, "-pubout"], capture_output=True, check=True, text=True)
    [found] = keys_of({"keys": [public_jwk(private, "kid")]})
    assert found == SigningKey("kid", public.stdout)


def test_G2_1_what_is_no_rsa_key_for_signatures_is_left_out(keys: list[dict]):
    good = keys[1]
    bad: list[object] = [
        None, "x", 7, [], {},
        good | {"kty": "EC"}, good | {"alg": "ES256"}, good | {"use": "enc"},
        good | {"kid": ""}, good | {"kid": "../x"}, good | {"kid": "a b"}, good | {"kid": "a" * 129},
        good | {"kid": None}, good | {"n": ""}, good | {"n": "AQAB"}, good | {"n": "!"}, good | {"n": 5},
        good | {"e": "AQ"}, good | {"e": None},
    ]  # fmt: skip
    assert keys_of({"keys": bad}) == ()
    assert keys_of({"keys": "text"}) == keys_of({"keys": 5}) == keys_of({}) == ()


def test_G2_1_the_keys_of_all_shards_are_one_set_and_one_name_is_one_key(keys: list[dict]):
    one, other = keys[1] | {"kid": "a"}, keys[2] | {"kid": "b"}
    found = {"root": {"keys": [other]}, "b": {"keys": [one, other]}}
    assert differing_keys(found) == {}
    assert [key.kid for key in merged_keys(found, {})] == ["a", "b"]


def test_G2_1_a_name_that_means_different_keys_stops_no_other_key_and_means_what_it_meant(keys: list[dict]):
    one, other, third = keys[1] | {"kid": "a"}, keys[2] | {"kid": "a"}, keys[2] | {"kid": "c"}
    found = {"root": {"keys": [one]}, "b": {"keys": [other, third]}}
    differing = differing_keys(found)
    assert {kid: str(error) for kid, error in differing.items()} == {
        "a": "shards root and b have different keys of one name, a"
    }
    assert [key.kid for key in merged_keys(found, differing)] == ["c"]
    [before] = keys_of({"keys": [one]})
    assert merged_keys(found, differing, in_use={"a": before}) == (before, *keys_of({"keys": [third]}))


def robot(name: str, **labels: str) -> dict:
    return {"metadata": {"name": name, "labels": labels or None}}


def test_G2_1_keys_in_use_are_kept_beside_those_of_the_shards_that_answer(keys: list[dict]):
    answers = [{"keys": [key | {"kid": kid}]} for key, kid in zip(keys, ("b", "a"), strict=False)]
    (first,), (second,) = map(keys_of, answers[:2])
    in_use = keys_in({"key-old.pub": "PEM", "key-.pub": "none", "shard-b.pem": "CA", "haproxy.cfg": ""})
    assert list(in_use) == ["old"]
    assert merged_keys({"root": answers[0]}, {}, in_use={second.kid: second}) == (second, first)


def test_G4_1_the_map_is_sorted_and_lacks_unknown_shards_and_bad_names():
    labels = {"r2": "b", "r1": "root", "r3": "nowhere", "R4": "root", "a" * 58: "root"}
    found = routes(labels, ("root", "b"))
    assert map_text(found) == "robot-r1 root\nrobot-r2 b\n"
    assert read_map(map_text(found)) == found
    told = unroutable(labels, ("root", "b"))
    assert [line for line, _ in told] == [
        "robot R4: the name is unusable",
        f"robot {'a' * 58}: the name is unusable",
        "robot r3: shard nowhere is not known",
    ]
    assert ["--shard" in hint for _, hint in told] == [False, False, True]


def test_G4_1_a_robot_without_the_label_is_at_the_root():
    assert shard_label(robot("r")) == shard_label(robot("r", other="x")) == "root"
    assert shard_label(robot("r", **{SHARD_LABEL: "b"})) == "b"


ROUTES = st.dictionaries(LABELS.map(lambda name: f"robot-{name}"), st.sampled_from(["root", "b", "c"]), max_size=12)


@given(running=ROUTES, wanted=ROUTES)
def test_G4_1_the_commands_make_the_running_map_the_wanted_one(running: dict, wanted: dict):
    became = dict(running)
    for command in changes(running, wanted, "/d/robots.map"):
        verb, word, file, namespace, *shard = command.split()
        assert (word, file) == ("map", "/d/robots.map")
        assert (namespace in became) == (verb != "add")
        if verb == "del":
            del became[namespace]
        else:
            [became[namespace]] = shard
    assert became == wanted
    assert list(changes(wanted, wanted, "x")) == []

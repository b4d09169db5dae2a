"""A shard that cannot be served, and a disk that is full: one line each, and what was written stays as it is."""

import asyncio
import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crsyncer.adapters.config import load_door
from crsyncer.door.domain.door_values import FrontDoor, Shard
from crsyncer.door.domain.haproxy_template import haproxy_files
from crsyncer.door.door_files import MAP, put_files, put_map, try_configuration
from crsyncer.door.gather_door import gather_door, shard_clusters
from crsyncer.errors import SyncError
from tests.adapters.kube_server import Certificates, always, answer, hostile, make_certificates, once, write_config
from tests.door.programs import haproxy

FORBIDDEN = json.dumps({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"}).encode()
NOT_FOUND = answer(b"404 page not found", status="404 Not Found", headers=("Content-Type: text/plain",))
SHARDS = {
    "shard b has no /openid/v1/jwks": NOT_FOUND,
    "shard b gives no keys: ": answer(FORBIDDEN, status="403 Forbidden"),
    "shard b has no RSA key at /openid/v1/jwks": answer(b'{"keys": []}'),
    "shard b gives no keys: the answer": answer(b"<html>"),
}
KEYS = b'{"keys": [{"kty": "RSA", "use": "sig", "kid": "k", "alg": "RS256", "n": "%s", "e": "AQAB"}]}' % (b"x" * 342)


@pytest.fixture
def issuer(tmp_path: Path) -> Certificates:
    return make_certificates(tmp_path)


async def gathered(home: Path, issuer: Certificates, root: str, b: str, ca: Path | None = None) -> FrontDoor:
    """What is gathered of two shards at these servers."""
    user = {"token": "s3cret-t0ken"}
    kubeconfig = write_config(home / "root", server=root, ca=issuer.ca, user=user)
    shards = (("b", write_config(home / "b", server=b, ca=ca or issuer.ca, user=user)),)
    settings = load_door({"cloud_kubeconfig": kubeconfig, "shards": shards, "directory": home / "door"}, {})
    async with shard_clusters(settings) as clusters:
        return await gather_door(settings, clusters)


@pytest.mark.parametrize("expected", SHARDS)
async def test_a_shard_without_keys_is_named_in_one_line(expected: str, tmp_path: Path, issuer: Certificates):
    pair = issuer.issue("server")
    async with (
        hostile(always(answer(KEYS)), pair=pair) as root,
        hostile(once(SHARDS[expected]), pair=pair) as b,
    ):
        with pytest.raises(SyncError) as caught:
            await gathered(tmp_path, issuer, root.url, b.url)
    told = str(caught.value)
    assert told.startswith(expected)
    assert "\n" not in told
    assert "s3cret" not in f"{told} {caught.value.hint}"


async def test_a_shard_that_is_unreachable_or_has_another_authority_is_named_in_one_line(
    tmp_path: Path, issuer: Certificates
):
    (tmp_path / "other").mkdir()
    other = make_certificates(tmp_path / "other")
    pair = issuer.issue("server")
    async with hostile(always(answer(KEYS)), pair=pair) as root, hostile(always(answer(KEYS)), pair=pair) as b:
        for url, ca, expected in ((b.url, other.ca, "certificate"), ("https://localhost:9", issuer.ca, "refused")):
            with pytest.raises(SyncError) as caught:
                await gathered(tmp_path, issuer, root.url, url, ca)
            told = str(caught.value)
            assert told.startswith("shard b gives no keys: ")
            assert expected in told
            assert "\n" not in told


@contextmanager
def no_space() -> Iterator[None]:
    """Refuse every file that grows."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_on_a_full_disk_the_files_that_haproxy_uses_stay_as_they_are(tmp_path: Path, issuer: Certificates):
    certificate = "".join(each.read_text() for each in issuer.issue("door"))
    shards = (Shard("root", "127.0.0.1", 443, "localhost", issuer.ca.read_text()),)
    door = FrontDoor(str(tmp_path / "door"), ("*", 8443), certificate, shards, ())
    (tmp_path / "door").mkdir()
    put_files(door)
    put_map(tmp_path / "door", "robot-r1 root\n")
    before = {file.name: file.read_bytes() for file in (tmp_path / "door").iterdir()}
    fuller = FrontDoor(door.directory, ("*", 9443), certificate, (*shards, Shard("b", "127.0.0.2", 443, "b")), ())
    told = []
    with no_space():
        for write in (
            lambda: put_map(tmp_path / "door", "robot-r2 root\n"),
            lambda: put_files(fuller),
            lambda: asyncio.run(try_configuration(fuller, "", program=str(haproxy()))),
        ):
            try:
                write()
            except SyncError as error:
                told.append(str(error))
    assert told == [f"{tmp_path / 'door'} cannot be written (file too large)"] * 3
    after = {file.name: file.read_bytes() for file in (tmp_path / "door").iterdir()}
    assert after == before
    assert put_files(fuller)
    assert {each.name for each in (tmp_path / "door").iterdir()} == {*haproxy_files(fuller), MAP}

"""Who may look, and who may change something: real sockets, other users and groups."""

import asyncio
import grp
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crsyncer.adapters.control import NAME, ask, serve
from crsyncer.console.operators.control_commands import changes
from crsyncer.core.model import Json
from crsyncer.errors import SyncError, Unsure

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

SOMEBODY, READERS, OTHERS = 65533, 65531, 65532
ADMINS = grp.getgrgid(1).gr_name
"""A group that every machine has."""
LOOK, CHANGE = {"command": "status"}, {"command": "resync"}


@contextmanager
def somebody(group: int, *more: int) -> Iterator[None]:
    """As a user who is in these groups and no others."""
    own, before = os.getegid(), os.getgroups()
    os.setgroups(more)
    os.setegid(group)
    os.seteuid(SOMEBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(own)
        os.setgroups(before)


async def echo(request: Json) -> Json:
    return {"asked": request}


class Place:
    """The directories of an agent as systemd makes them, where other users can reach them."""

    def __init__(self, directory: Path) -> None:
        directory.chmod(0o755)
        self.state, self.runtime = directory / "state", directory / "run"
        self.state.mkdir(mode=0o700)
        self.runtime.mkdir(mode=0o750)
        os.chown(self.runtime, 0, READERS)
        self.agents_group = READERS

    def serve(self, *, group: str = ""):
        return serve(self.state, self.handler, runtime_dir=self.runtime, changes=changes, group=group)

    async def handler(self, request: Json) -> Json:
        return await echo(request)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as directory:
        made = Place(Path(directory))
        monkeypatch.setenv("RUNTIME_DIRECTORY", str(made.runtime))
        old = os.getegid()
        os.setegid(READERS)  # the unit's agent runs in this group, so its socket is of it
        yield made
        os.setegid(old)


async def put(place: Place, request: Json, *groups: int) -> Json | None:
    with somebody(*groups):
        return await asyncio.to_thread(ask, place.state, request)


async def test_the_group_may_look_and_change_nothing(place: Place):
    async with place.serve():
        assert (place.runtime / NAME).stat().st_mode & 0o777 == 0o660
        assert not (place.state / NAME).exists()
        for groups in ((READERS,), (OTHERS, READERS)):
            assert await put(place, LOOK, *groups) == {"asked": LOOK}
            with pytest.raises(SyncError, match="you may look, but not change anything") as caught:
                await put(place, CHANGE, *groups)
            assert "root; the setting control.group names who else may" in caught.value.hint
        assert await asyncio.to_thread(ask, place.state, CHANGE) == {"asked": CHANGE}
    assert await asyncio.to_thread(ask, place.state, LOOK) is None


async def test_whoever_is_not_in_the_group_is_told_who_may(place: Place):
    async with place.serve():
        with pytest.raises(SyncError, match="you may not use the agent's control socket") as caught:
            await put(place, LOOK, OTHERS)
        assert f"a member of the group of {place.runtime} may look" in caught.value.hint


async def test_a_group_of_the_settings_may_change_something(place: Place):
    admins = grp.getgrnam(ADMINS).gr_gid
    async with place.serve(group=ADMINS):
        assert await put(place, CHANGE, READERS, admins) == {"asked": CHANGE}
        os.chmod(place.runtime, 0o755)
        os.chmod(place.runtime / NAME, 0o666)
        assert await put(place, CHANGE, admins) == {"asked": CHANGE}
        with pytest.raises(SyncError, match="not change anything") as caught:
            await put(place, CHANGE, READERS, OTHERS)
        assert f"of the group {ADMINS} (control.group)" in caught.value.hint


async def test_a_group_that_the_machine_does_not_know_has_no_members(place: Place, caplog: pytest.LogCaptureFixture):
    async with place.serve(group="nobody-knows"):
        with pytest.raises(SyncError, match="not change anything"):
            await put(place, CHANGE, READERS)
    assert "this machine has no such group" in caplog.text


async def test_the_agent_of_another_state_directory_is_not_asked(place: Place, tmp_path: Path):
    async with place.serve():
        assert await asyncio.to_thread(ask, tmp_path, LOOK) is None
        async with serve(tmp_path, echo):
            assert await asyncio.to_thread(ask, tmp_path, LOOK) == {"asked": LOOK}
            assert (tmp_path / NAME).is_socket()


async def test_what_a_killed_agent_leaves_is_no_agent_and_is_replaced(place: Place):
    async with place.serve():
        os.link(place.runtime / NAME, place.runtime / "kept")
    os.rename(place.runtime / "kept", place.runtime / NAME)
    assert await asyncio.to_thread(ask, place.state, LOOK) is None
    with pytest.raises(Unsure, match="the agent does not answer in "):
        await put(place, LOOK, READERS)
    async with place.serve():
        assert await put(place, LOOK, READERS) == {"asked": LOOK}


@pytest.mark.parametrize(
    ("request_", "change"),
    [
        *(({"command": command}, False) for command in ("status", "explain", "events", "pending", "progress")),
        ({"command": "release", "id": "h1", "dryRun": True}, False),
        ({"command": "release", "id": "h1", "dryRun": 1}, True),
        *(({"command": command}, True) for command in ("hold", "release", "retry", "drop", "resync", "unknown", None)),
        ({}, True),
    ],
)
def test_what_changes_something(request_: Json, change: bool):
    assert changes(request_) is change

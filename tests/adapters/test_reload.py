"""Real files changed in the ways that editors, Kubernetes and systemd change them."""

import asyncio
import os
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from crsyncer.adapters import reload
from crsyncer.adapters.reload import attempt, reloads
from crsyncer.errors import ConfigError
from tests.adapters.nobody import as_nobody, as_root

SOON = 60.0
QUIET = 0.5
CHANGES = 20


@asynccontextmanager
async def watching(files, load=None, *, debounce=0.05, poll=10 * SOON):
    """What arrives while the files are watched, as a queue; the watch is in place when this is entered."""
    arrived: asyncio.Queue = asyncio.Queue()
    asked = 0

    def named():
        nonlocal asked
        asked += 1
        return files

    async def follow():
        async for loaded in reloads(
            load or (lambda: [f.read_text() for f in files]), named, debounce=debounce, poll=poll
        ):
            arrived.put_nowait(loaded)

    task = asyncio.create_task(follow())
    await asyncio.sleep(0)
    neighbour = next(folder for folder in files[0].parents if folder.is_dir()) / "neighbour"
    before = asked
    try:
        async with asyncio.timeout(SOON):
            while poll > SOON and asked == before:
                neighbour.write_text("")
                await asyncio.sleep(0.01)
        yield arrived
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def next_of(arrived):
    return await asyncio.wait_for(arrived.get(), SOON)


async def test_a_changed_file_is_loaded_again(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("one")
    async with watching([file]) as arrived:
        file.write_text("two")
        assert await next_of(arrived) == ["two"]
        file.write_text("three")
        assert await next_of(arrived) == ["three"]


async def test_a_file_put_in_place_by_rename_is_noticed(tmp_path):
    file = tmp_path / "c.yaml~"  # a name that the default filter of watchfiles would pass over
    file.write_text("one")
    async with watching([file]) as arrived:
        (tmp_path / "new").write_text("two")
        os.replace(tmp_path / "new", file)
        assert await next_of(arrived) == ["two"]


async def test_a_config_map_that_swaps_its_directory_is_noticed(tmp_path):
    def publish(name, text):
        (tmp_path / name).mkdir()
        (tmp_path / name / "c.yaml").write_text(text)
        (tmp_path / "..data_tmp").symlink_to(name)
        os.replace(tmp_path / "..data_tmp", tmp_path / "..data")

    publish("..1", "one")
    file = tmp_path / "c.yaml"
    file.symlink_to("..data/c.yaml")
    async with watching([file], poll=1.0) as arrived:  # the second one may come before the new directory is watched
        for name, text in (("..2", "two"), ("..3", "three")):
            publish(name, text)
            assert await next_of(arrived) == [text]


async def test_a_link_to_another_directory_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "k").write_text("one")
    (tmp_path / "links").mkdir()
    file = tmp_path / "links" / "k"
    file.symlink_to("../real/k")
    async with watching([file]) as arrived:
        (tmp_path / "real" / "k").write_text("two")
        assert await next_of(arrived) == ["two"]


async def test_changes_of_neighbours_and_rewrites_of_the_same_are_nothing(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("one")
    async with watching([file]) as arrived:
        (tmp_path / "other").write_text("noise")
        file.write_text("one")
        await asyncio.sleep(QUIET)
        assert arrived.empty()


async def test_changes_close_together_are_one(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("0")
    async with watching([file], debounce=0.3) as arrived:
        for number in range(1, CHANGES + 1):
            file.write_text(str(number))
            await asyncio.sleep(0.01)
        loads = 1
        while await next_of(arrived) != [str(CHANGES)]:
            loads += 1  # where the machine stands still between two of them they are not close together
        assert loads < CHANGES / 2
        await asyncio.sleep(QUIET)
        assert arrived.empty()


async def test_a_bad_edit_is_an_error_and_the_watch_goes_on(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("good")

    def load():
        if (text := file.read_text()) == "bad":
            raise ConfigError("no good")
        return text

    async with watching([file], load) as arrived:
        file.write_text("bad")
        error = await next_of(arrived)
        assert isinstance(error, ConfigError)
        assert str(error) == "no good"
        file.write_text("better")
        assert await next_of(arrived) == "better"


async def test_a_file_that_is_not_there_yet_is_noticed_when_it_comes(tmp_path):
    file = tmp_path / "secrets" / "token"
    async with watching([file], lambda: file.exists()) as arrived:
        file.parent.mkdir()
        file.write_text("t")
        assert await next_of(arrived) is True
        file.unlink()
        assert await next_of(arrived) is False


async def test_a_file_named_by_the_new_configuration_is_watched_from_then_on(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    config, token = tmp_path / "c.yaml", tmp_path / "elsewhere" / "token"
    config.write_text("")
    files = [config]

    def load():
        files[1:] = [token] if config.read_text() else []
        return token.read_text() if token.exists() else None

    async with watching(files, load, poll=1.0) as arrived:
        config.write_text("token")
        assert await next_of(arrived) is None
        token.write_text("t1")
        assert await next_of(arrived) == "t1"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as somebody else")
async def test_a_directory_that_may_not_be_entered_any_more_is_a_change_and_the_watch_goes_on():
    with tempfile.TemporaryDirectory() as top:  # a path that also nobody may go
        closed = Path(top) / "closed"
        file = closed / "inner" / "token"
        file.parent.mkdir(parents=True)
        file.write_text("one")
        Path(top).chmod(0o755)

        def load():
            return file.read_text() if os.access(file, os.R_OK, effective_ids=True) else None

        with as_nobody():
            async with watching([file], load, poll=0.1) as arrived:
                with as_root():
                    closed.chmod(0)
                assert await next_of(arrived) is None
                with as_root():
                    closed.chmod(0o755)
                assert await next_of(arrived) == "one"


@pytest.mark.parametrize("text", ["loop/token", "no\0path", "x" * 5000], ids=["loop", "zero", "long"])
async def test_a_path_that_can_be_none_does_not_end_the_watch(tmp_path, text):
    (tmp_path / "loop").symlink_to("loop")
    file = tmp_path / "c.yaml"
    file.write_text("one")
    files = [file, tmp_path / text]
    async with watching(files, file.read_text) as arrived:
        file.write_text("two")
        assert await next_of(arrived) == "two"


async def test_what_the_kernel_does_not_tell_is_found_by_looking(tmp_path, monkeypatch):
    def no_watches(*_, **__):
        raise OSError("no inotify watches left")

    monkeypatch.setattr(reload, "awatch", no_watches)
    file = tmp_path / "c.yaml"
    file.write_text("one")
    async with watching([file], poll=0.1) as arrived:
        file.write_text("two")
        assert await next_of(arrived) == ["two"]


def test_an_attempt_returns_the_error():
    def refuse():
        raise ConfigError("no")

    assert attempt(lambda: 7) == 7
    assert isinstance(attempt(refuse), ConfigError)
    with pytest.raises(ZeroDivisionError):
        attempt(lambda: 1 // 0)

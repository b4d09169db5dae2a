"""The status socket, on a real Unix socket with real clients."""

import asyncio
import contextlib
import json
import os
import socket
import stat

import pytest

from crsyncer.adapters import control
from crsyncer.adapters.control import LARGEST_REQUEST, MOST_CLIENTS, ask, nameless, serve
from crsyncer.errors import ConfigError, Never, SyncError, Unsure
from tests.adapters.nobody import as_nobody
from tests.mount import mounted
from tests.system.bed import eventually


async def echo(request):
    return {"asked": request}


async def put(directory, request, **more):
    """Ask as the CLI does, in a thread of its own."""
    return await asyncio.to_thread(ask, directory, request, **more)


async def raw(directory, data: bytes):
    reader, writer = await asyncio.open_unix_connection(directory / "crsyncer.sock")
    writer.write(data)
    line = await reader.readline()
    writer.close()
    return json.loads(line)


async def test_a_question_gets_the_handlers_answer(tmp_path):
    async with serve(tmp_path, echo):
        assert await put(tmp_path, {"command": "status", "é": [1]}) == {"asked": {"command": "status", "é": [1]}}
        assert await put(tmp_path, {}) == {"asked": {}}


async def test_the_socket_is_for_user_and_group_and_goes_away(tmp_path):
    path = tmp_path / "crsyncer.sock"
    old = os.umask(0o077)
    try:
        async with serve(tmp_path, echo):
            assert stat.S_IMODE(path.stat().st_mode) == 0o660
    finally:
        os.umask(old)
    assert not path.exists()


async def test_answers_may_be_large(tmp_path):
    async def much(_):
        return {"text": "x" * 3_000_000}

    async with serve(tmp_path, much):
        assert len((await put(tmp_path, {}))["text"]) == 3_000_000


def test_without_an_agent_there_is_no_answer(tmp_path):
    assert ask(tmp_path, {}) is None
    assert ask(tmp_path / "nowhere", {}) is None


async def test_a_dead_agents_socket_is_no_agent_and_is_replaced(tmp_path):
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(tmp_path / "crsyncer.sock"))
    dead.close()
    assert await put(tmp_path, {}) is None
    async with serve(tmp_path, echo):
        assert await put(tmp_path, {}) == {"asked": {}}


async def test_something_else_of_that_name_is_not_destroyed(tmp_path):
    path = tmp_path / "crsyncer.sock"
    path.write_text("precious")
    with pytest.raises(ConfigError, match=r"crsyncer\.sock cannot be made"):
        async with serve(tmp_path, echo):
            pass
    assert path.read_text() == "precious"


async def test_a_successors_socket_survives_our_end(tmp_path):
    path = tmp_path / "crsyncer.sock"
    async with serve(tmp_path, echo):
        path.unlink()
        path.write_text("successor")
    assert path.exists()


async def test_a_path_too_long_for_a_socket_address_works(tmp_path):
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    assert await put(deep, {}) is None
    async with serve(deep, echo):
        assert (deep / "crsyncer.sock").is_socket()
        assert await put(deep, {}) == {"asked": {}}
    assert ask(deep / "gone", {}) is None


async def test_an_error_of_the_handler_reaches_the_client_with_its_hint(tmp_path):
    async def refuse(_):
        raise Never("no such hold", hint="crsyncer holds list")

    async with serve(tmp_path, refuse):
        with pytest.raises(SyncError, match="no such hold") as caught:
            await put(tmp_path, {})
    assert caught.value.hint == "crsyncer holds list"


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 60_000 + b"\n",
        b'{"command":' + b"[" * 30_000 + b"]" * 30_000 + b"}\n",
        b'{"a":' * 10_000 + b"1" + b"}" * 10_000 + b"\n",
    ],
    ids=["open", "closed", "objects"],
)
async def test_a_request_nested_deeply_is_refused_in_one_line(tmp_path, line):
    async with serve(tmp_path, echo):
        assert (await raw(tmp_path, line))["error"]["message"] == "the request is not a JSON object"
        assert await put(tmp_path, {}) == {"asked": {}}


async def test_an_answer_that_is_no_JSON_does_not_end_the_agent(tmp_path):
    async def odd(request):
        return {"answer": object()} if request else request

    async with serve(tmp_path, odd):
        with pytest.raises(SyncError, match="failed to answer"):
            await put(tmp_path, {"a": 1})
        assert await put(tmp_path, {}) == {}


@pytest.mark.parametrize("line", [b"nonsense\n", b"[]\n", b"\xff\n", b"\n"])
async def test_what_is_no_request_is_answered_so(tmp_path, line):
    async with serve(tmp_path, echo):
        assert (await raw(tmp_path, line))["error"]["message"] == "the request is not a JSON object"


async def test_an_endless_request_is_refused(tmp_path):
    async with serve(tmp_path, echo):
        answer = await raw(tmp_path, b"x" * (LARGEST_REQUEST + 2))
        assert "longer than 65536 bytes" in answer["error"]["message"]
        assert await put(tmp_path, {}) == {"asked": {}}


async def test_a_client_that_asks_nothing_is_sent_away(tmp_path):
    async with serve(tmp_path, echo, patience=0.1):
        reader, writer = await asyncio.open_unix_connection(tmp_path / "crsyncer.sock")
        assert await asyncio.wait_for(reader.read(), 30) == b""
        writer.close()


async def test_too_many_clients_are_turned_away_and_come_again_later(tmp_path):
    async with serve(tmp_path, echo, patience=600.0):
        idle = [await asyncio.open_unix_connection(tmp_path / "crsyncer.sock") for _ in range(MOST_CLIENTS)]
        with pytest.raises(SyncError, match="too many clients"):
            await put(tmp_path, {})
        for _, writer in idle:
            writer.close()

        async def let_in() -> bool:
            with contextlib.suppress(SyncError):
                return bool(await put(tmp_path, {}) == {"asked": {}})
            return False

        await eventually(let_in, what="the others have gone")


async def test_a_stuck_agent_is_said_to_be_stuck(tmp_path):
    async def hang(_):
        await asyncio.sleep(60)

    async with serve(tmp_path, hang):
        with pytest.raises(Unsure, match=r"did not answer within 0.1 s"):
            await put(tmp_path, {}, timeout=0.1)


@pytest.mark.parametrize("answer", [b"", b"{", b"{\n", b"[]\n", b"[" * 60_000 + b"\n"])
async def test_a_broken_answer_is_an_error(tmp_path, answer):
    async def babble(reader, writer):
        await reader.readline()
        writer.write(answer)
        writer.close()

    server = await asyncio.start_unix_server(babble, tmp_path / "crsyncer.sock")
    async with server:
        with pytest.raises(Unsure, match="closed the connection"):
            await put(tmp_path, {})


async def test_a_question_that_breaks_the_handler_does_not_break_the_agent(tmp_path, caplog):
    async def stumble(request):
        return {"half": 1 / request["number"]}

    async with serve(tmp_path, stumble):
        with pytest.raises(SyncError, match="failed to answer"):
            await put(tmp_path, {"number": 0})
        assert await put(tmp_path, {"number": 2}) == {"half": 0.5}
    assert "ZeroDivisionError" in caplog.text


async def test_the_end_does_not_wait_for_clients(tmp_path):
    async with asyncio.timeout(30):
        async with serve(tmp_path, echo):
            _, writer = await asyncio.open_unix_connection(tmp_path / "crsyncer.sock")
            await asyncio.sleep(0.05)
    writer.close()


async def test_an_endless_answer_is_cut(tmp_path, monkeypatch):
    async def much(_):
        return {"text": "x" * 500_000}

    monkeypatch.setattr(control, "LARGEST_ANSWER", 100_000)
    async with serve(tmp_path, much):
        with pytest.raises(Unsure, match="endless"):
            await put(tmp_path, {})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may everything")
async def test_a_stranger_is_told_whose_agent_it_is(tmp_path):
    async with serve(tmp_path, echo):
        (tmp_path / "crsyncer.sock").chmod(0)
        with pytest.raises(SyncError, match="may not use") as caught:
            await put(tmp_path, {})
        assert "root" in caught.value.hint


async def test_S6_5_on_a_disk_that_takes_no_socket_the_agent_is_asked_without_one(tmp_path):
    with mounted(tmp_path / "disk") as disk:
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(str(disk.directory / "crsyncer.sock"))
        dead.close()
        disk.read_only()
        assert await put(disk.directory, {}) is None
        async with serve(disk.directory, echo):
            assert await put(disk.directory, {"a": 1}) == {"asked": {"a": 1}}
            address = nameless(disk.directory)
            with socket.socket(socket.AF_UNIX) as stranger:
                with as_nobody():
                    stranger.connect(address)
                answer = await asyncio.to_thread(stranger.recv, 1000)
                assert b"you may not use the agent" in answer
        assert await put(disk.directory, {}) is None
        disk.writable()
        async with serve(disk.directory, echo):
            assert await put(disk.directory, {}) == {"asked": {}}
            assert (disk.directory / "crsyncer.sock").is_socket()


async def test_who_takes_the_name_of_such_an_agent_is_not_asked_and_does_not_stop_it(tmp_path, caplog):
    with mounted(tmp_path / "disk") as disk, socket.socket(socket.AF_UNIX) as squatter:
        disk.read_only()
        address = nameless(disk.directory)
        with as_nobody():
            squatter.bind(address)
            squatter.listen()
        assert await put(disk.directory, {}) is None
        async with serve(disk.directory, echo):
            assert await put(disk.directory, {}) is None
    assert "crsyncer status cannot ask this agent" in caplog.text

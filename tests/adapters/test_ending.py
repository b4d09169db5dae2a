"""The end of the process has a bounded time, whatever hangs, and comes at once where memory runs out."""

import inspect
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from crsyncer.adapters.ending import Ending

LINE = "crsyncer: out of memory; nothing is lost, the next start continues from here\n"
HANGS = "while True: time.sleep(600)"
"""It stands for whatever hangs: a read of a dead file system, or a cancellation that is lost."""


@contextmanager
def process(*work: str, seconds: float = 600.0, stderr: int = subprocess.PIPE) -> Iterator[subprocess.Popen[str]]:
    """A process with an Ending that does this work in its event loop, and then waits without listening to anyone."""
    script = f"""
        import asyncio, os, signal, threading, time
        from crsyncer.adapters.ending import Ending

        async def waits():
            while True:
                try:
                    await asyncio.sleep(600)
                except asyncio.CancelledError:
                    pass

        async def fails(error):
            raise error

        def raise_error(error):
            raise error

        async def main():
            ending = Ending(seconds={seconds})
            async with asyncio.TaskGroup() as group:
                group.create_task(waits())
                print("ready", flush=True)
        """
    lines = textwrap.dedent(script).splitlines() + [f"        {line}" for line in work] + ["asyncio.run(main())"]
    command = [sys.executable, "-c", "\n".join(lines)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            yield child
        finally:
            child.kill()


@pytest.mark.parametrize(
    "work",
    [
        "group.create_task(fails(MemoryError()))",
        "group.create_task(fails(ExceptionGroup('', [ValueError(), ExceptionGroup('', [MemoryError()])])))",
        "asyncio.get_running_loop().call_soon(raise_error, MemoryError())",
        "threading.Thread(target=raise_error, args=[MemoryError()]).start()",
    ],
    ids=["task", "group", "callback", "thread"],
)
def test_whoever_dies_of_a_memory_error_ends_the_process_in_one_line_though_others_never_end(work: str) -> None:
    with process(work) as child:
        _, error = child.communicate(timeout=60)
        assert child.returncode == 1
        assert error.startswith(LINE)
        assert error.splitlines()[1:] == [
            "hint: raise the limit (MemoryMax= of the unit, the pod's memory limit, ulimit -v)"
        ]


def test_without_memory_the_process_ends_though_nobody_reads_its_log() -> None:
    unread, log = os.pipe()
    os.set_blocking(log, False)
    try:
        while os.write(log, b"x" * 4096):
            pass
    except BlockingIOError:
        os.set_blocking(log, True)
    try:
        with process("await asyncio.create_task(fails(MemoryError()))", seconds=0.1, stderr=log) as child:
            assert child.wait(60) == 1
    finally:
        os.close(unread)
        os.close(log)


def test_any_other_error_ends_nothing_and_is_logged() -> None:
    work = [
        "asyncio.get_running_loop().call_soon(raise_error, ValueError('of a callback'))",
        "thread = threading.Thread(target=raise_error, args=[ValueError('of a thread')])",
        "thread.start()",
        "thread.join()",
        "lost = asyncio.create_task(fails(ValueError('of a task')))",
        "await asyncio.sleep(0.1)",
        "del lost",
        "os._exit(7)",
    ]
    with process(*work) as child:
        _, error = child.communicate(timeout=60)
        assert child.returncode == 7
        for what in ("callback", "thread", "task"):
            assert f"ValueError: of a {what}" in error


def test_an_agent_that_failed_ends_in_time_with_1_though_something_hangs() -> None:
    with process("ending.failed()", HANGS, seconds=0.1) as child:
        assert child.wait(60) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_after_a_signal_the_process_ends_in_time_with_0_though_its_event_loop_hangs(number: signal.Signals) -> None:
    with process(HANGS, seconds=0.1) as child:
        child.send_signal(number)
        assert child.wait(60) == 0


def test_an_agent_has_less_than_10_s_for_its_end() -> None:
    assert inspect.signature(Ending).parameters["seconds"].default < 10


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_told_to_the_event_loop(number: signal.Signals) -> None:
    with process("await ending.asked.wait()", "os._exit(7)") as child:
        child.send_signal(number)
        assert child.wait(60) == 7


def test_a_signal_that_a_thread_from_before_took_counts_as_well() -> None:
    with process("signal.getsignal(signal.SIGTERM)(signal.SIGTERM, None)", HANGS, seconds=0.1) as child:
        assert child.wait(60) == 0

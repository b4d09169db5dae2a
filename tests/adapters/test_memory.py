"""The agent's own memory: what it frees goes back to the kernel, however it was started."""

import asyncio
import os
import platform
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.kube_server import make_certificates
from tests.bench.soak import working_agent
from tests.system.bed import eventually

_ARENA_BYTES = 64 << 20
"""What glibc reserves for each arena but the first, on an address that is a multiple of it (HEAP_MAX_SIZE)."""


def arenas(pid: int) -> int:
    """How many arenas of glibc's allocator a process has beside the first, by the memory that they reserve."""
    lines = [line.split() for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
    spans = [(int(begin, 16), int(end, 16), line[1]) for line in lines for begin, end in [line[0].split("-")]]
    starts = {begin for begin, _, rights in spans if rights == "rw-p" and begin % _ARENA_BYTES == 0}
    ends = {end for _, end, rights in spans if rights == "---p"}
    return len({begin for begin in starts if begin + _ARENA_BYTES in ends})


_IMPORT = """
import ssl
from crsyncer.adapters.memory import import_aiohttp_without_roots
import_aiohttp_without_roots()
from aiohttp import connector
contexts = connector._SSL_CONTEXT_VERIFIED, connector._SSL_CONTEXT_UNVERIFIED, ssl.create_default_context()
print(*(context.cert_store_stats()["x509"] for context in contexts))
"""


def test_root_certificates_are_loaded_only_where_they_are_needed(tmp_path: Path) -> None:
    roots = os.environ | {"SSL_CERT_FILE": str(make_certificates(tmp_path).ca)}
    found = subprocess.run([sys.executable, "-c", _IMPORT], env=roots, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["0", "0", "1"]


@pytest.fixture
def core_files_allowed() -> Iterator[None]:
    """What crashes leaves a core file, as far as this process may allow that."""
    allowed, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, (allowed, most))


async def test_C5_6_an_agent_that_crashes_leaves_no_core_file(tmp_path: Path, core_files_allowed: None) -> None:
    async with working_agent(tmp_path, objects=1, rate=1.0) as (agent, _):
        assert resource.prlimit(agent.pid, resource.RLIMIT_CORE)[0] == 0
        place = Path(f"/proc/{agent.pid}/cwd").resolve()
        os.kill(agent.pid, signal.SIGABRT)

        async def ended() -> bool:
            return not agent.running

        await eventually(ended, what="the end of the agent")
        assert await asyncio.to_thread(_core_files, tmp_path, place) == []


def _core_files(*places: Path) -> list[str]:
    """The core files in directories, by their usual names."""
    found = [path for place in places for pattern in ("core", "core.*") for path in place.glob(pattern)]
    return [path.name for path in found if path.is_file()]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps an arena per thread")
async def test_a_working_agent_has_one_arena_for_all_its_threads(tmp_path: Path) -> None:
    async with working_agent(tmp_path, objects=20, rate=50.0) as (agent, _):
        await agent.until(lambda status: bool(status["writes"]["cloud"]["status"] > 20))
        assert arenas(agent.pid) == 0

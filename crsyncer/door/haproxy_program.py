"""The program HAProxy of this machine: its version, and whether it accepts a configuration."""

import asyncio
import re
from pathlib import Path

from crsyncer.door.domain.haproxy_answers import version
from crsyncer.errors import SyncError

OLDEST = (2, 6)
_SECONDS = 60.0
_SEVERE = re.compile(r"^\[ALERT\][^:]*: *(?:config : *)?", re.MULTILINE)


async def check_program(program: str = "haproxy") -> str:
    """The version of HAProxy, such as "2.6". Raises SyncError where it is missing, too old or lacks PCRE."""
    code, text = await _run(program, "-vv")
    found = version(text)
    if code != 0 or found is None:
        raise SyncError(f"{program} in PATH is not HAProxy", hint="install haproxy 2.6 or newer")
    name = ".".join(map(str, found))
    if found < OLDEST:
        raise SyncError(f"HAProxy {name} is too old", hint="install haproxy 2.6 or newer, such as Debian 12's")
    if not re.search(r"\+PCRE2?\b", text):
        raise SyncError(
            f"HAProxy {name} is built without PCRE, and cannot match a token's subject to its last byte",
            hint="install a build with USE_PCRE2=1, such as Debian's",
        )
    return name


async def check_configuration(file: Path, program: str = "haproxy") -> None:
    """Have HAProxy read a configuration without using it. Raises SyncError with its first complaint."""
    code, text = await _run(program, "-c", "-f", str(file))  # -q hides why
    if code != 0:
        complaints = [" ".join(each.split()) for each in _SEVERE.split(text)[1:]]
        first = next(iter(complaints), text.strip()[-300:] or f"exit {code}")
        raise SyncError(f"haproxy -c does not accept the configuration: {first[:300]}", hint="nothing was changed")


async def _run(program: str, *arguments: str) -> tuple[int, str]:
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
    except OSError as error:
        raise SyncError(f"{program} cannot be run ({error.strerror})", hint="install haproxy 2.6 or newer") from None
    try:
        async with asyncio.timeout(_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        raise SyncError(f"{program} {arguments[0]} gave no answer within {_SECONDS:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, output.decode(errors="replace")

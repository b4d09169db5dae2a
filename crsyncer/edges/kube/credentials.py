"""The login to one API server, and how it stays fresh: files are watched by their stamps, plug-ins by their expiry."""

import asyncio
import json
import logging
import os
import signal
import ssl
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crsyncer.edges.kube.loader import Stamp, stamp
from crsyncer.edges.kube.transport import tls_context
from crsyncer.errors import ConfigError

_LOADER = "from crsyncer.edges.kube.loader import main; main()"
_LOAD_TIMEOUT = 60.0
_PATIENCE = 10.0
"""Seconds between two looks at the token file, and between two runs of a plug-in."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """Text that never shows: not in a repr, a log line or an error."""

    text: str

    def __repr__(self) -> str:
        return "Secret(…)"


@dataclass(frozen=True, slots=True)
class Login:
    """How to reach one API server and who we are there."""

    server: str
    server_name: str | None
    proxy: Secret | None
    tls: ssl.SSLContext
    trust: tuple[str, bool]
    """The PEM bundle of the CA ("": the machine's roots), and whether it is used at all."""
    identity: Secret
    """Client certificate and key, as PEM."""
    authorization: Secret | None
    """The value of the Authorization header."""
    token_file: str | None
    expires: float | None
    """Unix time at which what the plug-in gave ends; None: never, or it did not say."""
    plugin: bool
    files: dict[str, Stamp | None]
    """Every file that went into this, and its stamp from before it was read."""


class Credentials:
    """The current login to one API server. `generation` rises whenever something in it changed."""

    def __init__(self, login: Login, *, path: Path | None, context: str | None) -> None:
        self.login = login
        self.generation = 0
        self._path = path
        self._context = context
        self._stale = False
        self._next_look = 0.0
        self._last_run = time.monotonic()
        self._loading = asyncio.Lock()

    @classmethod
    async def load(cls, path: Path | None, *, context: str | None) -> "Credentials":
        """Read the kubeconfig for the first time; raises ConfigError."""
        made = cls(await _load(path, context=context, old=None), path=path, context=context)
        if made.login.token_file and not made._read_token():
            message = f"token file {made.login.token_file}: missing, unreadable or empty"
            raise ConfigError(message, hint="whoever renews the token must write it there")
        return made

    async def current(self) -> Login:
        """The login for the next request; cheap unless something changed or a plug-in's answer expires."""
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + _PATIENCE
            if self.login.token_file:
                self._read_token()
            expires = self.login.expires
            if expires is not None and time.time() > expires - 30 and now - self._last_run >= _PATIENCE:
                self._stale = True
        if self._stale:
            await self._reload()
        return self.login

    def refresh(self) -> bool:
        """Look at every file again; True when one changed, or when a plug-in is due to be asked again.

        A new token is there at once; anything else is loaded, off the loop, before the next request.
        """
        changed = self._read_token()
        login = self.login
        touched = any(stamp(file) != seen for file, seen in login.files.items() if file != login.token_file)
        if touched or (login.plugin and time.monotonic() - self._last_run >= _PATIENCE):
            self._stale = changed = True
        return changed

    async def renew(self, refused: int) -> bool:
        """After a 401 to a request of generation `refused`: is there anything newer to try?"""
        if self.generation == refused:
            self.refresh()
            await self.current()
        return self.generation != refused

    def _read_token(self) -> bool:
        """Take over the token file if it changed; a missing or empty one changes nothing, it may be half written."""
        file = self.login.token_file
        if file is None:
            return False
        seen = stamp(file)
        if seen is None or (seen == self.login.files.get(file) and self.login.authorization is not None):
            return False
        try:
            token = Path(file).read_text().strip()
        except (OSError, UnicodeDecodeError):
            return False
        if not token or not token.isascii() or not token.isprintable():
            return False
        authorization = Secret(f"Bearer {token}")
        changed = authorization != self.login.authorization
        self.login = replace(self.login, authorization=authorization, files={**self.login.files, file: seen})
        self.generation += changed
        return changed

    async def _reload(self) -> None:
        """Load everything anew. What cannot be loaded changes nothing: the old login may well go on working."""
        async with self._loading:
            if not self._stale:
                return
            self._stale = False
            self._last_run = time.monotonic()
            old = self.login
            # Taken now, so that a file which changes once more is loaded once more, and a bad one only once.
            seen = {file: stamp(file) for file in old.files}
            try:
                new = await _load(self._path, context=self._context, old=old)
                if new.server != old.server:
                    message = f"the kubeconfig now names another server, {new.server}"
                    raise ConfigError(message, hint="restart the agent to move to it")
            except ConfigError as error:
                log.warning("credentials kept as they were: %s (%s)", error, error.hint)
                kept = {**seen, old.token_file: old.files.get(old.token_file)} if old.token_file else seen
                self.login = replace(self.login, files=kept)
                return
            if new.token_file and new.token_file == old.token_file:
                new = replace(
                    new,
                    authorization=self.login.authorization,
                    files={**new.files, new.token_file: self.login.files[new.token_file]},
                )
            self.login = new
            self._read_token()
            if (new.tls, self.login.authorization, new.proxy) != (old.tls, old.authorization, old.proxy):
                self.generation += 1


async def _load(path: Path | None, *, context: str | None, old: Login | None) -> Login:
    """Run the loader; raises ConfigError. The TLS context of `old` lives on, and its connections, if it still fits."""
    found = await _run_loader(path, context=context)
    if "error" in found:
        raise ConfigError(found["error"], hint=found["hint"])
    trust = (found["ca"] or "", bool(found["verify"]))
    identity = Secret((found["certificate"] or "") + (found["key"] or ""))
    if not trust[1]:
        if os.environ.get("CRSYNCER_ALLOW_INSECURE_TLS") != "1":
            message = f"kubeconfig {path}: insecure-skip-tls-verify lets anybody be {found['server']}"
            raise ConfigError(message, hint="put the CA into it, or set CRSYNCER_ALLOW_INSECURE_TLS=1")
        if old is None:
            log.warning("the certificate of %s is NOT verified (CRSYNCER_ALLOW_INSECURE_TLS=1)", found["server"])
    if old is not None and (old.trust, old.identity) == (trust, identity):
        tls = old.tls
    else:
        tls = tls_context(ca=found["ca"], certificate=found["certificate"], key=found["key"], verify=trust[1])
    authorization, token_file = found["authorization"], found["token_file"]
    return Login(
        server=found["server"],
        server_name=found["server_name"],
        proxy=Secret(found["proxy"]) if found["proxy"] else None,
        tls=tls,
        trust=trust,
        identity=identity,
        authorization=Secret(authorization) if authorization and not token_file else None,
        token_file=token_file,
        expires=found["expires"],
        plugin=found["plugin"],
        files={file: tuple(seen) if seen else None for file, seen in found["files"].items()},
    )


async def _run_loader(path: Path | None, *, context: str | None) -> dict[str, Any]:
    """What the loader printed. Its own session, so that a hanging plug-in is ended together with it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-c", _LOADER, str(path or ""), context or ""),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(_LOAD_TIMEOUT):
            output, _ = await process.communicate()
    except TimeoutError:
        message = f"kubeconfig {path or '(default)'}: nothing came of it within {_LOAD_TIMEOUT:g} s"
        raise ConfigError(message, hint="does its exec plug-in hang?") from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    try:
        found = json.loads(output)
    except ValueError:
        found = None
    if process.returncode or not isinstance(found, dict):
        message = f"kubeconfig {path or '(default)'}: it could not be loaded (exit {process.returncode})"
        raise ConfigError(message, hint="does `kubectl --kubeconfig=… version` work with it?")
    return found

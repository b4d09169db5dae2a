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

from crsyncer.adapters.kube.kubeconfig import Kubeconfig, Secret, Stamp, bearer, read_kubeconfig, stamp
from crsyncer.adapters.kube.transport import tls_context
from crsyncer.errors import ConfigError

_LOADER = "from crsyncer.adapters.kube.loader import main; main()"
_HELPER_TIMEOUT = 60.0
_MARGIN = 30.0
"""Seconds before its expiry at which a plug-in's answer is renewed."""
_PATIENCE = 10.0
"""Seconds between two looks at the token file, and between two runs of a plug-in."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Login:
    """How to reach one API server and who we are there."""

    config: Kubeconfig
    tls: ssl.SSLContext
    identity: tuple[str, bool, str, Secret]
    """What `tls` was made of: CA, whether it is used, client certificate, key."""
    authorization: Secret | None
    """The value of the Authorization header."""
    expires: float | None
    """Unix time at which what the plug-in gave ends; None: never, or it did not say."""
    files: dict[str, Stamp | None]
    """Every file but the token's that went into this, and its stamp from before it was read."""


class Credentials:
    """The current login to one API server. `generation` rises whenever something in it changed."""

    def __init__(self, login: Login, *, path: Path | None, context: str | None) -> None:
        self.login = login
        self.generation = 0
        self._path = path
        self._context = context
        self._token_seen: Stamp | None = None
        self._stale = False
        self._next_look = 0.0
        self._last_load = time.monotonic()
        self._loading = asyncio.Lock()

    @classmethod
    async def load(cls, path: Path | None, *, context: str | None) -> "Credentials":
        """Read the kubeconfig for the first time; raises ConfigError."""
        made = cls(await _load(path, context=context, old=None), path=path, context=context)
        made._read_token()
        if made.login.config.token_file and made.login.authorization is None:
            message = f"token file {made.login.config.token_file}: missing, unreadable, empty or no token"
            raise ConfigError(message, hint="whoever renews the token has to write it there")
        return made

    async def current(self) -> Login:
        """The login for the next request; cheap unless something changed or a plug-in's answer expires."""
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + _PATIENCE
            self._read_token()
            expires = self.login.expires
            if expires is not None and time.time() > expires - _MARGIN and now - self._last_load >= _PATIENCE:
                self._stale = True
        if self._stale:
            await self._reload()
        return self.login

    def refresh(self) -> bool:
        """Look at every file again; True when one changed, or when a plug-in is due to be asked again.

        A new token is there at once; anything else is loaded before the next request.
        """
        changed = self._read_token()
        config = self.login.config
        due = config.helper is not None and time.monotonic() - self._last_load >= _PATIENCE
        if due or any(stamp(file) != seen for file, seen in self.login.files.items()):
            self._stale = changed = True
        return changed

    async def renew(self, refused: int) -> bool:
        """After a 401 to a request of generation `refused`: is there anything newer to try?"""
        if self.generation == refused:
            self.refresh()
            await self.current()
        return self.generation != refused

    def _read_token(self) -> bool:
        """Take over the token file if it changed. A missing or odd one changes nothing: it may be half written."""
        file = self.login.config.token_file
        seen = stamp(file) if file else None
        if file is None or seen is None or seen == self._token_seen:
            return False
        try:
            authorization = bearer(Path(file).read_text())
        except (OSError, UnicodeDecodeError, ConfigError):
            return False
        self._token_seen = seen
        changed = authorization != self.login.authorization
        self.login = replace(self.login, authorization=authorization)
        self.generation += changed
        return changed

    async def _reload(self) -> None:
        """Load everything anew. What cannot be loaded changes nothing: the old login may well go on working."""
        async with self._loading:
            if not self._stale:
                return
            self._stale = False
            self._last_load = time.monotonic()
            # Taken now, so that a bad file is tried once, and once more as soon as it changes.
            seen = {file: stamp(file) for file in self.login.files}
            try:
                new = await _load(self._path, context=self._context, old=self.login)
                if new.config.server != self.login.config.server:
                    message = f"the kubeconfig now names another server, {new.config.server}"
                    raise ConfigError(message, hint="its login is not for this one")
            except ConfigError as error:
                log.warning("credentials stay as they were: %s (%s)", error, error.hint)
                self.login = replace(self.login, files=seen)
                return
            old = self.login
            if new.config.token_file:
                new = replace(new, authorization=old.authorization)
            self.login, self._token_seen = new, None
            self._read_token()
            if (new.tls, new.config.proxy, self.login.authorization) != (old.tls, old.config.proxy, old.authorization):
                self.generation += 1


async def _load(path: Path | None, *, context: str | None, old: Login | None) -> Login:
    """Read everything; raises ConfigError. The TLS context of `old` lives on, and its connections, if it still fits."""
    config = read_kubeconfig(path, context=context)
    if not config.verify:
        if os.environ.get("CRSYNCER_ALLOW_INSECURE_TLS") != "1":
            message = f"kubeconfig {path}: insecure-skip-tls-verify lets anybody be {config.server}"
            raise ConfigError(message, hint="put the CA into it, or set CRSYNCER_ALLOW_INSECURE_TLS=1")
        if old is None:
            log.warning("the certificate of %s is NOT verified (CRSYNCER_ALLOW_INSECURE_TLS=1)", config.server)
    certificate, key = config.certificate, config.key
    authorization, expires = config.authorization, None
    try:
        if config.helper is not None:
            given = await _ask_helper(config.helper, directory=config.directory)
            if "error" in given:
                raise ConfigError(given["error"], hint=given["hint"])
            if given["certificate"] and given["key"]:
                certificate, key = given["certificate"], Secret(given["key"])
            authorization = bearer(given["authorization"].removeprefix("Bearer ")) if given["authorization"] else None
            expires = given["expires"]
        identity = (config.ca, config.verify, certificate, key)
        if old is not None and old.identity == identity:
            tls = old.tls
        else:
            tls = tls_context(ca=config.ca, certificate=certificate, key=key.text, verify=config.verify)
    except ConfigError as error:
        raise ConfigError(f"kubeconfig {path or ''}: {error}", hint=error.hint) from None
    return Login(
        config=config,
        tls=tls,
        identity=identity,
        authorization=None if config.token_file else authorization,
        expires=expires,
        files=config.files,
    )


async def _ask_helper(user: Secret, *, directory: Path) -> dict[str, Any]:
    """What the loader printed. It has a session of its own, so that a hanging plug-in is ended together with it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-c", _LOADER),
        cwd=directory,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(_HELPER_TIMEOUT):
            output, _ = await process.communicate(user.text.encode())
    except TimeoutError:
        message = f"its exec plug-in or auth-provider gave nothing within {_HELPER_TIMEOUT:g} s"
        raise ConfigError(message, hint="run it by hand") from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    try:
        found = json.loads(output)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        message = f"its exec plug-in or auth-provider could not be asked (exit {process.returncode})"
        raise ConfigError(message, hint="does kubectl work with this kubeconfig?")
    return found

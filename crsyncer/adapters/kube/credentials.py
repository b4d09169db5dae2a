"""The login to one API server, and how it stays fresh: files are watched by their stamps, plug-ins by their expiry."""

import asyncio
import json
import logging
import math
import os
import signal
import ssl
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crsyncer.adapters.kube.kubeconfig import Kubeconfig, Secret, Stamp, bearer, read_kubeconfig, stamp
from crsyncer.adapters.kube.transport import tls_context
from crsyncer.errors import ConfigError, NotAllowed

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
    authorization: Secret | None = None
    """The value of the Authorization header."""
    expires: float | None = None
    """Unix time at which the plug-in's answer ends; None: never, or it did not say."""
    trouble: ConfigError | None = None
    """Why no request can be sent: neither the plug-in nor the token file has ever given a credential."""


class Credentials:
    """The current login to one API server. `generation` rises whenever something in it changed."""

    def __init__(self, path: Path | None, *, context: str | None, insecure: bool = False) -> None:
        """Check the form of a kubeconfig; raises ConfigError. `current` asks its plug-in and reads its token file.

        `insecure`: take a kubeconfig that wants no verification of the server's certificate.
        """
        self.login = _read(path, context=context, insecure=insecure, old=None)
        self.generation = 0
        self._path = path
        self._context = context
        self._insecure = insecure
        self._files = self.login.config.files
        """Every file of the login but the token's, and its stamp from before it was read."""
        self._token_seen: Stamp | None = None
        self._stale = self.login.config.helper is not None
        self._next_look = -math.inf
        self._last_load = -math.inf
        self._loading = asyncio.Lock()

    async def current(self) -> Login:
        """The login for the next request; cheap unless something changed or a plug-in's answer expires.

        Raises NotAllowed while neither the plug-in nor the token file has ever given a credential.
        """
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + _PATIENCE
            self._read_token()
            self._stale = self._stale or (self._wants_helper() and now - self._last_load >= _PATIENCE)
        if self._stale:
            await self._reload()
        if (trouble := self.login.trouble) is not None:
            raise NotAllowed(str(trouble), status=401, hint=trouble.hint)
        return self.login

    def refresh(self) -> bool:
        """Look at every file again; True when one changed, or when a plug-in is due to be asked again.

        A new token is there at once; anything else is loaded before the next request.
        """
        changed = self._read_token()
        due = self.login.config.helper is not None and time.monotonic() - self._last_load >= _PATIENCE
        if due or any(stamp(file) != seen for file, seen in self._files.items()):
            self._stale = changed = True
        return changed

    async def renew(self, refused: int) -> bool:
        """After a 401 to a request of generation `refused`: is there anything newer to try?"""
        if self.generation == refused:
            self.refresh()
            await self.current()
        return self.generation != refused

    def _wants_helper(self) -> bool:
        """Whether the plug-in has given nothing yet, or its answer is about to expire."""
        expires = self.login.expires
        expired = expires is not None and time.time() > expires - _MARGIN
        return self.login.config.helper is not None and (expired or self.login.trouble is not None)

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
        self.login = replace(self.login, authorization=authorization, trouble=None)
        self.generation += changed
        return changed

    async def _reload(self) -> None:
        """Load everything anew. A failure changes nothing: the old login may well go on working."""
        async with self._loading:
            if not self._stale:
                return
            self._stale = False
            # Taken now, so that a bad file is tried once, and once more as soon as it changes.
            self._files = {file: stamp(file) for file in self._files}
            old = self.login
            try:
                new = _read(self._path, context=self._context, insecure=self._insecure, old=old)
                if new.config.server != old.config.server:
                    message = f"the kubeconfig now names another server, {new.config.server}"
                    raise ConfigError(message, hint="its login is not for this one")
                if new.config.helper is not None:
                    new = await _ask(new, path=self._path, old=old)
            except ConfigError as error:
                if old.trouble is None:
                    log.warning("credentials stay as they were: %s (%s)", error, error.hint)
                else:
                    self.login = replace(old, trouble=error)
                return
            finally:
                self._last_load = time.monotonic()
            if new.config.token_file and old.trouble is None:
                new = replace(new, authorization=old.authorization, trouble=None)
            self.login, self._files, self._token_seen = new, new.config.files, None
            self._read_token()
            if (new.tls, new.config.proxy, self.login.authorization) != (old.tls, old.config.proxy, old.authorization):
                self.generation += 1


def _read(path: Path | None, *, context: str | None, insecure: bool, old: Login | None) -> Login:
    """The login as far as its files tell; raises ConfigError."""
    config = read_kubeconfig(path, context=context)
    if not config.verify:
        if not insecure:
            message = f"kubeconfig {path}: insecure-skip-tls-verify lets anybody pose as {config.server}"
            raise ConfigError(message, hint="put the CA into it, or give --insecure-skip-tls-verify as well")
        if old is None:
            log.warning("the certificate of %s is NOT verified (insecure-skip-tls-verify)", config.server)
    trouble = None
    if config.token_file:
        message = f"token file {config.token_file}: missing, unreadable, empty or no token"
        trouble = ConfigError(message, hint="whoever renews the token has to write it there")
    elif config.helper is not None:
        trouble = ConfigError("its exec plug-in or auth-provider has not answered yet")
    with _naming(path):
        identity = (config.ca, config.verify, config.certificate, config.key)
        authorization = None if config.token_file else config.authorization
        return Login(config, _tls(identity, old), identity, authorization, trouble=trouble)


async def _ask(login: Login, *, path: Path | None, old: Login) -> Login:
    """The login with what its plug-in or provider answers; raises ConfigError."""
    config, certificate, key = login.config, login.config.certificate, login.config.key
    with _naming(path):
        given = await _ask_helper(config.helper or Secret(""), directory=config.directory)
        if "error" in given:
            raise ConfigError(given["error"], hint=given["hint"])
        if given["certificate"] and given["key"]:
            certificate, key = given["certificate"], Secret(given["key"])
        identity = (config.ca, config.verify, certificate, key)
        if config.token_file:  # it wins over what the plug-in says, as for kubectl
            return replace(login, tls=_tls(identity, old), identity=identity, expires=given["expires"])
        authorization = bearer(given["authorization"].removeprefix("Bearer ")) if given["authorization"] else None
        return Login(config, _tls(identity, old), identity, authorization, given["expires"])


def _tls(identity: tuple[str, bool, str, Secret], old: Login | None) -> ssl.SSLContext:
    """The TLS context for an identity: that of `old`, and with it its connections, if it still fits."""
    if old is not None and old.identity == identity:
        return old.tls
    ca, verify, certificate, key = identity
    return tls_context(ca=ca, certificate=certificate, key=key.text, verify=verify)


@contextmanager
def _naming(path: Path | None) -> Iterator[None]:
    """Have a ConfigError name the kubeconfig."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"kubeconfig {path or ''}: {error}", hint=error.hint) from None


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
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        message = f"its exec plug-in or auth-provider could not be asked (exit {process.returncode})"
        raise ConfigError(message, hint="does kubectl work with this kubeconfig?")
    return found

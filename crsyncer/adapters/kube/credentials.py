"""The current login to one API server, and how it stays fresh."""

import asyncio
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from crsyncer.adapters.kube.certificates import token_subject
from crsyncer.adapters.kube.loader import ask_loader
from crsyncer.adapters.kube.login import Login, bearer, named, read_login, with_certificate
from crsyncer.core.accounts.enrolment import read_token, renewal, token_request, worker
from crsyncer.core.requests.answers import judge
from crsyncer.core.requests.calls import Call
from crsyncer.errors import ConfigError, NotAllowed, SyncError, Unsure
from crsyncer.ports import Reply

_MARGIN = 30.0
"""Seconds before its expiry at which a plug-in's answer is renewed."""
_PATIENCE = 10.0
"""Seconds between two tries to renew a login."""
_NONE_YET = NotAllowed("there is no credential yet", status=401)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Given:
    """A login that was asked for, in event loop time, in seconds."""

    login: Login
    renew_at: float = math.inf
    ends_at: float = math.inf


class Renewal:
    """A login that is asked for with another one, the source. It lives in memory alone.

    While no new one can be had, the last one is used: it may still be good, and if it is not, the server says so.
    """

    def __init__(self, ask: Callable[[Login, Login | None], Awaitable[Given]]) -> None:
        """`ask` gets the source and the last login, and returns the source itself where there is nothing to ask for."""
        self.changes = 0
        """How often it gave another login."""
        self._ask = ask
        self._source: Login | None = None
        self._given: Given | None = None
        self._ask_at = self._tried_at = -math.inf
        self._trouble: SyncError = _NONE_YET

    @property
    def is_good(self) -> bool:
        """Whether the last login has not ended."""
        return self._given is not None and _now() < self._given.ends_at

    @property
    def source(self) -> Login | None:
        """The login that asks; None where there is nothing to ask for."""
        return self._source if self._given is not None and self._given.login is not self._source else None

    async def current(self, source: Login) -> Login:
        """The login for the next request; raises NotAllowed or Unsure where there is none. One caller at a time."""
        if source is not self._source:
            self._source, self._ask_at = source, -math.inf
        if _now() >= self._ask_at:
            await self._renew(source)
        if self._given is None:
            raise self._trouble
        return self._given.login

    def expire(self) -> bool:
        """Ask again with the next request, though not within 10 s of the last time; whether there is whom to ask."""
        asks = self._source is not None and (self._given is None or self.source is not None)
        if not asks or _now() < self._tried_at + _PATIENCE:
            return False
        self._ask_at = -math.inf
        self._given = self._given and replace(self._given, ends_at=-math.inf)
        return True

    async def _renew(self, source: Login) -> None:
        old = self._given.login if self._given is not None else None
        self._tried_at = _now()
        try:
            given = await self._ask(source, old)
        except SyncError as error:
            if isinstance(error, Unsure) and not self.is_good:
                raise  # the server would not answer the request itself either
            self._ask_at = _now() + _PATIENCE  # the try itself may have taken longer
            if old is not None and not isinstance(error, Unsure) and str(error) != str(self._trouble):
                log.warning("credentials stay as they were: %s (%s)", error, error.hint)
            self._trouble = error
            return
        self._given, self._ask_at, self._trouble = given, given.renew_at, _NONE_YET
        self.changes += given.login is not source and given.login != old


class Credentials:
    """The login to one API server: that of its files, renewed by a plug-in and by the server itself where it has to be.

    Where the kubeconfig's token is good for making tokens of another account only, requests are sent with short
    tokens of that account.
    """

    def __init__(
        self,
        path: Path | None,
        send: Callable[[Call, Login], Awaitable[Reply]],
        *,
        context: str = "",
        insecure: bool = False,
    ) -> None:
        """Check the form of a kubeconfig; raises ConfigError. `current` asks its plug-in, `send` sends with a login."""
        self._read = partial(read_login, path, context, insecure=insecure)
        self.login = self._files = self._source = self._read()
        self._send = send
        self._reads = 0
        self._failure = ""
        """What was wrong with the files when they were last read."""
        self._plugin, self._tokens = self._renewals = Renewal(_ask_plugin), Renewal(self._ask_for_token)
        self._asking = asyncio.Lock()
        if not self.login.identity.verify:
            log.warning("the certificate of %s is NOT verified (insecure-skip-tls-verify)", self.login.config.server)

    @property
    def generation(self) -> int:
        """Rises whenever something in the login has changed."""
        return self._reads + sum(each.changes for each in self._renewals)

    @property
    def token_maker(self) -> Login | None:
        """The login of the account that makes the tokens of the working account; None: there is one account."""
        return self._tokens.source

    @property
    def will_verify(self) -> bool:
        """Whether the next request verifies the server's certificate."""
        return self._files.identity.verify

    async def current(self) -> Login:
        """The login for the next request; cheap unless something has to be renewed.

        Raises NotAllowed as long as there has never been a credential, and Unsure while the server does not answer and
        no short token is good.
        """
        if self._asking.locked() and self._source is self._files and all(each.is_good for each in self._renewals):
            return self.login  # a new one is being asked for, which may take long
        async with self._asking:
            login = self._source = self._files
            if login.trouble is not None:
                raise NotAllowed(str(login.trouble), status=401, hint=login.trouble.hint)
            for each in self._renewals:
                login = await each.current(login)
            self.login = login
        return login

    def refresh(self) -> bool:
        """Read the files again; True when something changed, or when a plug-in will be asked again.

        A failure changes nothing: the old login may well go on working.
        """
        try:
            found, failure = self._read(old=self._files), ""
            if found.config.server != self._files.config.server:
                message = f"the kubeconfig now names another server, {found.config.server}"
                raise ConfigError(message, hint="its login is not for this one")
            if found.trouble is not None and self._files.trouble is None:
                raise found.trouble
        except ConfigError as error:
            found, failure = self._files, str(error)
            if failure != self._failure:
                log.warning("credentials stay as they were: %s (%s)", error, error.hint)
        changed = found != self._files or failure != self._failure
        if found != self._files:
            self._files, self._reads = found, self._reads + 1
        self._failure = failure
        return self._plugin.expire() or changed

    async def renew(self, refused: int) -> bool:
        """After a 401 to a request of generation `refused`: is there anything newer to try?"""
        if self.generation == refused:
            self.refresh()
            self._tokens.expire()
            await self.current()
        return self.generation != refused

    async def _ask_for_token(self, login: Login, _old: Login | None) -> Given:
        """The login with a new token of the account that it works for; raises NotAllowed or Unsure."""
        account = worker(token_subject(login.authorization.text)) if login.authorization else None
        if account is None:
            return Given(login)
        asked_at = _now()
        reply = await self._send(token_request(account), login)
        error = judge(reply.status, reply.body, text=reply.text, retry_after=reply.retry_after)
        if isinstance(error, Unsure):
            raise error
        found = read_token(reply.body, now=time.time() if reply.date is None else reply.date)
        if error is not None or found is None:
            message = f"no token could be made for {account}: {error or 'the answer shows none'}"
            hint = (
                f"is the robot locked out? its tokens are bound to the Secret {account.secret} in namespace"
                f" {account.namespace}; crsyncer cloud-manifests --two-accounts prints Secrets, accounts and roles"
            )
            raise NotAllowed(message, status=401, hint=hint)
        token, lifetime = found
        login = replace(login, authorization=bearer(token), renewed=True)
        return Given(login, asked_at + renewal(lifetime, random.random()), asked_at + lifetime)  # noqa: S311


async def _ask_plugin(login: Login, old: Login | None) -> Given:
    """The login with what its plug-in or provider answers; raises NotAllowed."""
    if login.helper is None:
        return Given(login)
    try:
        answer = await ask_loader(login.helper.text, directory=login.config.directory)
        if answer["certificate"] and answer["key"]:
            login = with_certificate(login, answer["certificate"], answer["key"], old=old)
        if login.config.path("tokenFile") is None:  # it wins over the plug-in's answer, as for kubectl
            authorization = answer["authorization"]
            login = replace(
                login, authorization=bearer(authorization.removeprefix("Bearer ")) if authorization else None
            )
    except ConfigError as error:
        failure = named(login.config, error)
        raise NotAllowed(str(failure), status=401, hint=failure.hint) from None
    ends_at = math.inf if answer["expires"] is None else _now() + answer["expires"] - time.time()
    return Given(login, max(_now() + _PATIENCE, ends_at - _MARGIN), ends_at)


def _now() -> float:
    return asyncio.get_running_loop().time()

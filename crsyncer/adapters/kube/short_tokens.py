"""Works with short tokens that the account of the kubeconfig makes for another one, and renews them."""

import asyncio
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from crsyncer.adapters.kube.certificates import token_subject
from crsyncer.adapters.kube.credentials import Credentials, Login
from crsyncer.adapters.kube.tls import Secret
from crsyncer.core.answers import judge
from crsyncer.core.calls import Call
from crsyncer.core.enrolment import Account, read_token, renewal, token_request, worker
from crsyncer.errors import NotAllowed, SyncError, Unsure
from crsyncer.ports import Reply

_PATIENCE = 10.0
"""Seconds between two tries to make a token."""
log = logging.getLogger(__name__)


class ShortTokens:
    """The login to one API server, by short tokens where the kubeconfig's own token is good for making those only.

    A token lives in memory alone. While none is made, the last one goes on being used: it may still be good, and if it
    is not, the server says so. `send` sends a request with a login.
    """

    def __init__(self, credentials: Credentials, send: Callable[[Call, Login], Awaitable[Reply]]) -> None:
        self._credentials = credentials
        self._send = send
        self._making = asyncio.Lock()
        self._maker: Secret | None = None
        """The kubeconfig's own Authorization header."""
        self._account: Account | None = None
        """The account that it makes tokens for."""
        self._authorization: Secret | None = None
        self._made = 0
        self._made_at = self._renew_at = self._ends_at = -math.inf
        """Event loop time, in seconds."""
        self._trouble = ""
        self._begun = False

    @property
    def login(self) -> Login:
        """The kubeconfig's."""
        return self._credentials.login

    @property
    def generation(self) -> int:
        """Rises whenever something in the login has changed."""
        return self._credentials.generation + self._made

    async def current(self) -> Login:
        """The login for the next request.

        Raises Unsure while the server does not answer and no token is good, NotAllowed as long as there has never been
        a credential.
        """
        login = await self._credentials.current()
        is_good = self._maker == login.authorization and asyncio.get_running_loop().time() < self._ends_at
        if is_good and self._making.locked():  # a new one is being made, which may take long
            return replace(login, authorization=self._authorization, renewed=True)
        async with self._making:
            login = self._credentials.login  # it may have changed while another request made a token
            if self._maker != login.authorization:
                self._maker, self._renew_at = login.authorization, -math.inf
                self._account = worker(token_subject(login.authorization.text)) if login.authorization else None
            if self._account is not None:
                if asyncio.get_running_loop().time() >= self._renew_at:
                    await self._renew(login, self._account)
                login = replace(login, authorization=self._authorization, renewed=True)
        self._begun = True
        return login

    def refresh(self) -> bool:
        """Look at the kubeconfig's files again; True when something changed."""
        return self._credentials.refresh()

    async def renew(self, refused: int) -> bool:
        """After a 401 to a request of generation `refused`: is there anything newer to try?"""
        if self.generation == refused and asyncio.get_running_loop().time() >= self._made_at + _PATIENCE:
            self._renew_at = self._ends_at = -math.inf
            await self.current()
        return self.generation != refused or await self._credentials.renew(refused - self._made)

    async def _renew(self, login: Login, account: Account) -> None:
        """Make a token; a failure changes nothing where there was one before."""
        now = asyncio.get_running_loop().time()
        try:
            token, lifetime = await self._make(login, account)
        except SyncError as error:
            if self._authorization is None:
                # Later than at a start, only a connection that was up asks, and that takes this for a lost one.
                raise Unsure(str(error), hint=error.hint) if self._begun else error from None
            if isinstance(error, Unsure) and now >= self._ends_at:
                raise  # the server would not answer the request itself either
            self._renew_at = asyncio.get_running_loop().time() + _PATIENCE  # the try itself may have taken longer
            if not isinstance(error, Unsure) and str(error) != self._trouble:
                log.warning("the token of %s stays as it was: %s (%s)", account, error, error.hint)
            self._trouble = str(error)
            return
        self._trouble = ""
        self._authorization = Secret(f"Bearer {token}")
        self._made, self._made_at = self._made + 1, now
        self._ends_at = now + lifetime
        self._renew_at = now + renewal(lifetime, random.random())  # noqa: S311

    async def _make(self, login: Login, account: Account) -> tuple[str, float]:
        """A new token and how long it lives, in seconds; raises NotAllowed or Unsure."""
        reply = await self._send(token_request(account), login)
        error = judge(reply.status, reply.body, text=reply.text, retry_after=reply.retry_after)
        if isinstance(error, Unsure):
            raise error
        found = read_token(reply.body, now=time.time() if reply.date is None else reply.date)
        if error is not None or found is None:
            message = f"no token could be made for {account}: {error or 'the answer shows none'}"
            hint = "is the robot locked out? crsyncer cloud-manifests --two-accounts prints accounts and roles"
            raise NotAllowed(message, status=401, hint=hint)
        return found

"""One API server as the doctor sees it: the login's facts, the server's certificate, and single requests."""

import asyncio
import os
import ssl
import stat
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from crsyncer.adapters.kube.certificates import span, spans, token_span
from crsyncer.adapters.kube.client import KubeCluster
from crsyncer.adapters.kube.login import Login
from crsyncer.adapters.kube.transport import CONNECT_TIMEOUT, unsure
from crsyncer.adapters.kubeconfig import Kubeconfig
from crsyncer.core.reports.findings import LoginFacts, Validity
from crsyncer.core.requests.calls import Call
from crsyncer.errors import ConfigError, NotAllowed, Unsure
from crsyncer.ports import Reply


class KubeVisit:
    """One context of a kubeconfig, and the server behind it. Made by `enter`, closed by `aclose`."""

    def __init__(self, cluster: KubeCluster, login: Login) -> None:
        self._cluster = cluster
        self._login = login
        self._server = urlsplit(login.config.server)
        self.facts = _login_facts(login)

    @classmethod
    async def enter(cls, kubeconfig: Path | None, context: str, *, insecure: bool = False) -> "KubeVisit":
        """Load the login, and ask its plug-in if it has one; raises ConfigError."""
        cluster = KubeCluster(kubeconfig, context, insecure=insecure)
        try:
            return cls(cluster, await cluster.credentials.current())
        except BaseException as error:
            await cluster.close()
            if isinstance(error, NotAllowed):
                raise ConfigError(str(error), hint=error.hint) from None
            raise

    async def resolve(self) -> None:
        """Look the server's name up; raises Unsure where it has no address."""
        if self._login.proxy is not None:
            return  # the proxy does it
        url = self._server
        try:
            await asyncio.get_running_loop().getaddrinfo(url.hostname, url.port or 443)
        except OSError:
            raise Unsure(
                f"the server's name {url.hostname} does not resolve",
                hint="check DNS, the network and the kubeconfig's server",
            ) from None

    async def certificate(self) -> Validity | None:
        """The server's certificate as it shows it, and whether we trust it. Raises Unsure.

        None behind a proxy. Nothing but handshakes are made, and no credential but a client certificate is sent, and
        that only to a server that we trust.
        """
        if self._login.proxy is not None:
            return None
        blind = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        blind.check_hostname = False
        blind.verify_mode = ssl.CERT_NONE
        try:
            found = span(await self._handshake(blind))
        except OSError as error:
            raise unsure(error, seconds=CONNECT_TIMEOUT) from None
        try:
            await self._handshake(self._login.tls)
        except ssl.SSLCertVerificationError as error:
            why = unsure(error, seconds=CONNECT_TIMEOUT)
            return Validity("server-certificate", *found, objection=str(why), remedy=why.hint)
        except OSError:
            pass  # whatever it is, it is not about the certificate, and the requests will meet it too
        return Validity("server-certificate", *found)

    async def _handshake(self, context: ssl.SSLContext) -> bytes:
        """The server's certificate, as DER; raises OSError."""
        url = self._server
        name = self._login.server_name or url.hostname
        _, writer = await asyncio.open_connection(url.hostname, url.port or 443, ssl=context, server_hostname=name)
        try:
            return writer.get_extra_info("ssl_object").getpeercert(binary_form=True) or b""
        finally:
            writer.transport.abort()

    async def request(self, call: Call) -> Reply:
        """Send one request; raises Unsure."""
        return await self._cluster.request(call)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._cluster.close()


def _login_facts(login: Login) -> LoginFacts:
    config, identity = login.config, login.identity
    validities = []
    if identity.ca:
        # Any certificate of a bundle will do, so the one that lasts longest counts.
        longest = max(spans(identity.ca), key=lambda found: found[1] or 0.0, default=(None, None))
        validities.append(Validity("ca", *longest))
    if identity.certificate:
        found = next(iter(spans(identity.certificate)), (None, None))
        validities.append(Validity("client-certificate", *found, renewed=login.helper is not None))
    scheme, _, token = (login.authorization.text if login.authorization else "").partition(" ")
    if scheme == "Bearer" and (lifetime := token_span(token)) is not None:
        renewed = login.renewed or login.helper is not None or config.path("tokenFile") is not None
        validities.append(Validity("token", *lifetime, renewed=renewed))
    return LoginFacts(config.server, _means(login), identity.verify, tuple(validities), _exposed(config))


def _means(login: Login) -> str:
    parts = []
    if login.helper is not None:
        parts.append("an exec plug-in or auth-provider, which answered")
    elif login.identity.certificate:
        parts.append("a client certificate")
    if token_file := login.config.path("tokenFile"):
        parts.append(f"the token in {token_file}")
    elif login.authorization is not None and login.helper is None:
        token = "a short token that its account makes" if login.renewed else "a token"
        parts.append(token if login.authorization.text.startswith("Bearer ") else "user name and password")
    return " and ".join(parts) or "nothing"


def _exposed(config: Kubeconfig) -> tuple[str, ...]:
    """The kubeconfig and its files that others may write, or read where they are secret.

    The account that is mounted into a pod is the kubelet's matter.
    """
    if config.file is None:
        return ()
    found = []
    for file in config.files:
        with suppress(OSError, ValueError):
            mode = stat.S_IMODE(os.stat(file).st_mode)
            secret = file in (config.file, config.path("tokenFile")) or "PRIVATE KEY" in file.read_text()
            if mode & (0o077 if secret else 0o022):
                found.append(f"{file} (mode {mode:04o})")
    return tuple(found)

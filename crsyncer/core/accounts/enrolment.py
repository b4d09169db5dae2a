"""Short tokens: which account works, which account makes tokens for it, and when a token is renewed.

The account that makes tokens may do nothing else, and its own token does not expire, so that a robot that was offline
for weeks comes back by itself. The names are those of `crsyncer cloud-manifests --two-accounts`.
"""

from dataclasses import dataclass
from datetime import datetime

from crsyncer.core.accounts.robot_account import ACCOUNT, ENROLL, ROBOTS, TOKEN_SECONDS
from crsyncer.core.model import Json
from crsyncer.core.requests.calls import Call

_EARLIEST, _LATEST = 0.7, 0.9
"""The part of its life after which a token is renewed, as by the kubelet."""


@dataclass(frozen=True, slots=True)
class Account:
    """A service account, and the Secret in its namespace that its tokens are bound to."""

    namespace: str
    name: str
    secret: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def worker(subject: str) -> Account | None:
    """The account that the bearer of a token makes tokens for; None: none, the bearer works with this one itself."""
    match subject.split(":"):
        case ["system", "serviceaccount", namespace, name] if name == ENROLL:
            return Account(namespace, ACCOUNT, ENROLL)
        case ["system", "serviceaccount", namespace, name] if namespace == ENROLL:
            return Account(ROBOTS, name, name)
        case _:
            return None


def token_request(account: Account, *, seconds: int = TOKEN_SECONDS, is_bound: bool = True) -> Call:
    """Ask for a token of an account, which ends with the account's Secret if it is bound.

    The server may give another lifetime; the one in its answer counts.
    """
    path = f"/api/v1/namespaces/{account.namespace}/serviceaccounts/{account.name}/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    spec: Json = {"expirationSeconds": seconds}
    if is_bound:
        spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Secret", "name": account.secret}
    return Call("create", "POST", path, body=body | {"spec": spec}, timeout=20.0, by_token_maker=True)


def read_token(body: Json, *, now: float) -> tuple[str, float] | None:
    """The token in an answer, and how long it lives, in seconds; None where there is none.

    `now` is the server's time of the answer, so that a robot's wrong clock does not matter.
    """
    try:
        token, until = body["status"]["token"], body["status"]["expirationTimestamp"]
        lifetime = datetime.fromisoformat(until).timestamp() - now
    except (KeyError, TypeError, ValueError):
        return None
    return (token, max(0.0, lifetime)) if isinstance(token, str) and token else None


def renewal(lifetime: float, chance: float) -> float:
    """After how many seconds of its life a token is renewed; `chance`, from 0 to 1, spreads robots."""
    return lifetime * (_EARLIEST + (_LATEST - _EARLIEST) * chance)

"""Tokens as a robot has them, and as somebody makes them who is none; and framings that may hide a request."""

import base64
import hashlib
import hmac
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Forger:
    """Makes tokens that are much like a good one. A claim, or a field of the header, that is None is left out."""

    def __init__(self, good: str, ours: Path, theirs: Path) -> None:
        """`ours` is the private key of the API server, `theirs` another."""
        head, claims, self.signature = map(_decoded, good.split("."))
        self.head: dict[str, Any] = json.loads(head)
        self.claims: dict[str, Any] = json.loads(claims)
        self.ours = ours
        self.theirs = theirs

    def signed(self, *, key: Path | None = None, **changed: Any) -> str:
        """Signed by RS256, whatever its header says; without a key by ours."""
        message = self._message(changed)
        sign: list[str | Path] = ["openssl", "dgst", "-sha256", "-sign", key or self.ours]
        done = subprocess.run(sign, input=message.encode(), capture_output=True, check=True)
        return f"{message}.{_encoded(done.stdout)}"

    def unsigned(self, signature: bytes = b"", **changed: Any) -> str:
        """With any signature."""
        return f"{self._message(changed)}.{_encoded(signature)}"

    def by_public_key(self) -> str:
        """By HS256, with what everybody knows for its secret."""
        public = subprocess.run(["openssl", "rsa", "-in", self.ours, "-pubout"], capture_output=True, check=True).stdout
        message = self._message({"alg": "HS256"})
        return f"{message}.{_encoded(hmac.digest(public, message.encode(), hashlib.sha256))}"

    def _message(self, changed: dict[str, Any]) -> str:
        head = self.head | {name: value for name, value in changed.items() if name in ("alg", "kid")}
        claims = self.claims | {name: value for name, value in changed.items() if name not in ("alg", "kid")}
        both = ({name: value for name, value in each.items() if value is not None} for each in (head, claims))
        return ".".join(_encoded(json.dumps(each).encode()) for each in both)


def new_key(path: Path, *, bits: int = 2048) -> Path:
    """A private RSA key of one's own."""
    subprocess.run(["openssl", "genrsa", "-out", path, str(bits)], check=True, capture_output=True)
    return path


def subject(robot: str, account: str = "crsyncer") -> str:
    """The subject of a robot's account."""
    return f"system:serviceaccount:robot-{robot}:{account}"


def later(seconds: float = 3600) -> int:
    """A time from now, as a claim."""
    return int(time.time() + seconds)


def token_of(robot: str, key: Path, kid: str) -> str:
    """A token of a robot, signed by a key."""
    head = _encoded(json.dumps({"alg": "RS256", "kid": kid}).encode())
    claims = _encoded(json.dumps({"sub": subject(robot), "exp": later()}).encode())
    return Forger(f"{head}.{claims}.", key, key).signed()


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def public_jwk(private: Path, kid: str) -> dict[str, Any]:
    """The public half of a private key, as an API server publishes it."""
    shown = subprocess.run(
        ["openssl", "rsa", "-in", private, "-noout", "-modulus"], capture_output=True, check=True, text=True
    ).stdout
    modulus = int(shown.partition("=")[2], 16)
    number = _encoded(modulus.to_bytes((modulus.bit_length() + 7) // 8))
    return {"use": "sig", "kty": "RSA", "kid": kid, "alg": "RS256", "n": number, "e": "AQAB"}


FORGERIES: dict[str, Callable[[Forger], str]] = {
    "another key": lambda forger: forger.signed(key=forger.theirs),
    "another key for another robot": lambda forger: forger.signed(key=forger.theirs, sub=subject("r2")),
    "a changed claim": lambda forger: forger.unsigned(forger.signature, sub=subject("r2")),
    "alg none": lambda forger: forger.unsigned(alg="none"),
    "alg none with a signature": lambda forger: forger.signed(alg="none"),
    "alg None with a signature": lambda forger: forger.signed(alg="None"),
    "alg HS256 by the public key": lambda forger: forger.by_public_key(),
    "alg RS512": lambda forger: forger.signed(alg="RS512"),
    "no kid": lambda forger: forger.signed(kid=None),
    "a foreign kid": lambda forger: forger.signed(kid="foreign"),
    "a kid that is an option": lambda forger: forger.signed(kid="-f"),
    "a kid that is a path": lambda forger: forger.signed(key=forger.theirs, kid="../x"),
    "expired": lambda forger: forger.signed(exp=later(-5)),
    "no end": lambda forger: forger.signed(exp=None),
    "an end that is a text": lambda forger: forger.signed(exp="never"),
    "an end below zero": lambda forger: forger.signed(exp=-1),
    "a line feed after the subject": lambda forger: forger.signed(sub=f"{subject('r1')}\n"),
    "a zero byte after the subject": lambda forger: forger.signed(sub=f"{subject('r1')}\0"),
    "a subject within another": lambda forger: forger.signed(sub=f"x{subject('r1')}"),
    "upper case": lambda forger: forger.signed(sub=subject("R1")),
    "a name that is too long": lambda forger: forger.signed(sub=subject("a" * 58)),
    "a name with a slash": lambda forger: forger.signed(sub=subject("r1/r2")),
    "another account of the namespace": lambda forger: forger.signed(sub=subject("r1", "default")),
    "an account of another namespace": lambda forger: forger.signed(sub="system:serviceaccount:kube-system:crsyncer"),
    "a list of subjects": lambda forger: forger.signed(sub=[subject("r1")]),
    "the enrolling account": lambda forger: forger.signed(sub=subject("r1", "crsyncer-enroll")),
    "garbage": lambda _: "garbage",
    "three dots": lambda _: "...",
    "empty": lambda _: "",
}

FRAMINGS = (
    "Content-Length: {length}\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nContent-Length: {length}",
    "Transfer-Encoding: xchunked\r\nContent-Length: 5",
    "Transfer-Encoding : chunked\r\nContent-Length: 5",
    "Transfer-Encoding: chunked, identity\r\nContent-Length: 5",
    "Transfer-Encoding: identity, chunked",
    "Transfer-Encoding:\tchunked\r\nContent-Length: 5",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\nContent-Length: 5",
    "Content-Length: 5\r\nContent-Length: {length}",
    "Content-Length: 5, {length}",
    "Content-Length: +5",
    "Content-Length: -1",
    "Content-Length: 5\r\n\tx",
    "X: y\r\n Transfer-Encoding: chunked\r\nContent-Length: 5",
    "Transfer-Encoding: \x0bchunked\r\nContent-Length: 5",
    "Content-Length: 5\nTransfer-Encoding: chunked",
    "Content-Length: 5\r\rTransfer-Encoding: chunked",
)
"""How long a body is, told in two ways: two programs may see two requests."""

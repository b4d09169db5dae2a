"""Tokens as a robot has them, and as somebody makes them who is none."""

import base64
import hashlib
import hmac
import json
import subprocess
import time
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

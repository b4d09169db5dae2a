"""Which secrets a run of the tests has made, and where they may be."""

import base64
import binascii
import contextlib
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

CREDENTIAL_FILES = {
    "kubeconfigs of the planes' administrators": ("*.kubeconfig",),
    "kubeconfigs of the tests' agents": ("cloud.yaml", "robot.yaml", "away.yaml"),
    "kubeconfigs of the tests of logging in": (
        *("cloud", "robot", "config", "kubeconfig", "k"),
        *("plain", "direct", "gone", "there"),
    ),
    "exec plug-ins of tests, and what they answer": ("plugin", "reply"),
    "what a kubeconfig's tokenFile names": ("token",),
    "the value of a Secret of a test, as JSON has it; the planes store it otherwise": ("secret-value",),
    "the administrator's token, as an API server reads it and as its plane remembers it": ("tokens.csv", "plane.json"),
    "private keys of servers and clients": ("*.key", "key"),
}
"""The only files that may hold a secret, by their names. Secrets of the robot's cluster may too: see the recorder."""

_SHORTEST = 12
"""Characters. A shorter secret, such as a test's `t`, is found in any text."""
_FIELDS = re.compile(rb"""(?:token|password|client-key-data|admin_token)["']?\s*:\s*["']?([^\s"',}]+)""")
_PRIVATE_KEY = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----\s+([^-]+)-----END")


def may_hold_secrets(file: Path) -> bool:
    """Is this one of the credential files?"""
    return any(fnmatch(file.name, pattern) for names in CREDENTIAL_FILES.values() for pattern in names)


def secrets_in(file: Path) -> Iterator[bytes]:
    """The secrets of a credential file; of a JWT the parts after its header, of a private key its lines."""
    content = file.read_bytes()
    for secret in _fields(file.name, content):
        parts = secret.split(b".")[1:] if secret.startswith(b"eyJ") else [secret]
        yield from (part for part in parts if len(part) >= _SHORTEST)


def _fields(name: str, content: bytes) -> Iterator[bytes]:
    if name in ("token", "secret-value"):
        yield content.strip()
    if name == "tokens.csv":
        yield content.partition(b",")[0]
    for field in _FIELDS.findall(content):
        yield field
        with contextlib.suppress(binascii.Error):
            yield from _keys(base64.b64decode(field, validate=True))
    yield from _keys(content)


def _keys(pem: bytes) -> Iterator[bytes]:
    """The lines of the private keys in a PEM file."""
    for body in _PRIVATE_KEY.findall(pem):
        yield from body.split()

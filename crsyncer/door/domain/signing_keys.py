"""The public keys that sign the tokens of service accounts: from an API server's JWKS to the PEM that HAProxy reads.

Sources: RFC 7517 and RFC 7518, 6.3 (JWK), RFC 8017, A.1.1 and RFC 5280, 4.1 (SubjectPublicKeyInfo), X.690 (DER).
"""

import base64
import re
import textwrap
from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from crsyncer.core.model import Json
from crsyncer.door.domain.door_values import SigningKey
from crsyncer.errors import SyncError

JWKS_PATH = "/openid/v1/jwks"
_KID = re.compile("[A-Za-z0-9_-]{1,128}")
_SEQUENCE, _INTEGER, _BIT_STRING = 0x30, 0x02, 0x03
_RSA = bytes.fromhex("300d06092a864886f70d0101010500")
"""The AlgorithmIdentifier of rsaEncryption, with its NULL."""
_LEAST_BITS = 1024
"""OpenSSL, with Debian's settings, refuses certificates below; a JWKS with less is broken."""


def merged_keys(
    found: Mapping[str, Json], differing: Container[str], *, in_use: Mapping[str, SigningKey] = MappingProxyType({})
) -> tuple[SigningKey, ...]:
    """The keys of all shards, whose answers are by the shards' names, without the names in `differing`.

    `differing` is what `differing_keys` finds in these answers. `in_use` are kept, by their names: keys of shards that
    give no answer, and what a differing name meant before.
    """
    keys = {key.kid: key for answer in found.values() for key in keys_of(answer) if key.kid not in differing}
    keys = {**in_use, **keys}
    return tuple(keys[kid] for kid in sorted(keys))


def differing_keys(found: Mapping[str, Json]) -> dict[str, SyncError]:
    """The names by which two shards mean different keys, with an error each that names the shards."""
    owners: dict[str, tuple[str, SigningKey]] = {}
    differing: dict[str, SyncError] = {}
    for shard, answer in found.items():
        for key in keys_of(answer):
            owner, known = owners.setdefault(key.kid, (shard, key))
            if known != key:
                differing[key.kid] = SyncError(
                    f"shards {owner} and {shard} have different keys of one name, {key.kid}",
                    hint="a key's name is its digest, so one of them is not an API server",
                )
    return differing


def keys_of(answer: Json) -> tuple[SigningKey, ...]:
    """The RSA keys of a JWKS, as far as they can be read. Others are left out, for the door verifies RS256 alone."""
    entries = answer.get("keys")
    found = map(_key, entries if isinstance(entries, Sequence) and not isinstance(entries, str) else ())
    return tuple(each for each in found if each is not None)


def _key(entry: Any) -> SigningKey | None:
    if not isinstance(entry, dict):
        return None
    kid, algorithm, use = str(entry.get("kid") or ""), entry.get("alg", "RS256"), entry.get("use", "sig")
    if not _KID.fullmatch(kid) or entry.get("kty") != "RSA" or algorithm != "RS256" or use != "sig":
        return None
    modulus, exponent = _number(entry.get("n")), _number(entry.get("e"))
    if modulus.bit_length() < _LEAST_BITS or exponent < 3:
        return None
    return SigningKey(kid, _pem(modulus, exponent))


def _number(text: Any) -> int:
    """An unsigned integer in base64url; 0 for what is none."""
    if not isinstance(text, str) or not re.fullmatch("[A-Za-z0-9_-]+", text):
        return 0
    try:
        return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError:
        return 0


def _pem(modulus: int, exponent: int) -> str:
    numbers = _der(_SEQUENCE, _integer(modulus) + _integer(exponent))
    info = _der(_SEQUENCE, _RSA + _der(_BIT_STRING, b"\0" + numbers))
    lines = textwrap.wrap(base64.b64encode(info).decode(), 64)
    return "\n".join(["-----BEGIN PUBLIC KEY-----", *lines, "-----END PUBLIC KEY-----", ""])


def _integer(value: int) -> bytes:
    """A positive INTEGER: its first bit is the sign, so a zero byte may come before it."""
    return _der(_INTEGER, value.to_bytes(value.bit_length() // 8 + 1))


def _der(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 0x80:
        return bytes([tag, length]) + content
    digits = length.to_bytes((length.bit_length() + 7) // 8)
    return bytes([tag, 0x80 | len(digits)]) + digits + content

"""HAProxy's files, made of values: the configuration by the template `haproxy.cfg`, keys, certificates, own answers."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from crsyncer.door.domain.door_values import FrontDoor, Shard, SigningKey

CONFIGURATION = "haproxy.cfg"
CERTIFICATE = "certificate.pem"
_TEMPLATE = Path(__file__).parent / CONFIGURATION
_BLOCK = re.compile(r"#for (\w+)\n(.*?)#end\n", re.DOTALL)
_PLACE = re.compile(r"<([A-Z-]+)>")
_SERVER = (
    r"(ipv6@\[(?P<six>[^]]+)\]|(?P<host>[^ :]+)):(?P<port>\d+) ssl verify (?P<verify>none|required).*"
    r" sni str\((?P<name>[^)]+)\)"
)
"""How the template has a server, after its name."""
_PAUSE_SECONDS = 10
_ANSWERS: Mapping[int, tuple[str, str, str]] = {
    400: ("Bad Request", "BadRequest", "the door does not accept this request: its path, or an upgrade"),
    401: ("Unauthorized", "Unauthorized", "the door does not accept this token"),
    403: ("Forbidden", "Forbidden", "the door does not accept the name of a header"),
    408: ("Request Timeout", "Timeout", "the head of the request took longer than 10 s"),
    429: ("Too Many Requests", "TooManyRequests", "more than 32 requests in progress, or than 200 in 10 s"),
    500: ("Internal Server Error", "InternalError", "the door failed"),
    502: ("Bad Gateway", "ServiceUnavailable", "the robot's API server gave no answer that is one"),
    503: ("Service Unavailable", "ServiceUnavailable", "the door has no API server for this robot now"),
    504: ("Gateway Timeout", "Timeout", "the robot's API server gave no answer in time"),
}
"""The door's own answers by status: the reason in HTTP, the reason in Kubernetes, the message."""
_RETRIED = frozenset({429, 502, 503, 504})
_KEPT_OPEN = frozenset({429, 503})
"""After these the connection is used again; after the others nobody guesses where the next request begins."""


def haproxy_files(door: FrontDoor) -> dict[str, str]:
    """Every file in HAProxy's directory but the map, by name."""
    authorities = {_authority(shard): shard.authority for shard in door.shards if shard.authority}
    keys = {_key_file(each.kid): each.pem for each in door.keys}
    answers = {f"{status}.http": _answer(status) for status in _ANSWERS}
    return {**answers, **keys, **authorities, CERTIFICATE: door.certificate, CONFIGURATION: _configuration(door)}


def keys_in(files: Mapping[str, str]) -> dict[str, SigningKey]:
    """The keys in the directory's files, by their names."""
    found = {name: re.fullmatch(r"key-(.+)\.pub", name) for name in files}
    return {kid[1]: SigningKey(kid[1], files[name]) for name, kid in found.items() if kid is not None}


def shard_in(files: Mapping[str, str], name: str) -> Shard | None:
    """A shard as the directory's files lead to it; None where they do not."""
    found = re.search(rf"^  server {name} {_SERVER}", files.get(CONFIGURATION, ""), re.MULTILINE)
    if found is None:
        return None
    host, port, authority = found["six"] or found["host"], int(found["port"]), files.get(f"shard-{name}.pem", "")
    return Shard(name, host, port, found["name"], authority, is_verified=found["verify"] == "required")


def is_ours(name: str) -> bool:
    """Whether a file in the directory is one that the door makes, perhaps for a former configuration."""
    return re.fullmatch(r"key-.+\.pub|shard-.+\.pem|\d{3}\.http", name) is not None


def _configuration(door: FrontDoor) -> str:
    common = {"DIRECTORY": door.directory, "BIND": _address(*door.bind)}
    blocks: Mapping[str, Sequence[Mapping[str, str]]] = {
        "KEY": [
            {"NUMBER": str(number), "KID": key.kid, "FILE": _key_file(key.kid)}
            for number, key in enumerate(door.keys, 1)
        ],
        "EXPORTER": [{"EXPORTER": _address(*door.exporter)}] if door.exporter else [],
        "SHARD": [
            {
                "NAME": shard.name,
                "SERVER-NAME": shard.server_name,
                "ADDRESS": _address(shard.host, shard.port),
                "TRUST": _trust(shard, door.directory),
            }
            for shard in door.shards
        ],
    }
    return "".join(_filled(blocks, common))


def _filled(blocks: Mapping[str, Sequence[Mapping[str, str]]], common: Mapping[str, str]) -> Iterator[str]:
    """The template with its places filled; what is between `#for` and `#end` comes once for each value."""
    template = _template()
    at = 0
    for block in _BLOCK.finditer(template):
        yield _fill(template[at : block.start()], common)
        for values in blocks[block[1]]:
            yield _fill(block[2], {**common, **values})
        at = block.end()
    yield _fill(template[at:], common)


@cache
def _template() -> str:
    return _TEMPLATE.read_text(encoding="utf-8")


def _fill(text: str, values: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda place: values[place[1]], text)


def _address(host: str, port: int) -> str:
    return f"ipv6@[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _trust(shard: Shard, directory: str) -> str:
    if not shard.is_verified:
        return "verify none"
    authority = f"{directory}/{_authority(shard)}" if shard.authority else "@system-ca"
    return f"verify required verifyhost {shard.server_name} ca-file {authority}"


def _authority(shard: Shard) -> str:
    return f"shard-{shard.name}.pem"


def _key_file(kid: str) -> str:
    return f"key-{kid}.pub"


def _answer(status: int) -> str:
    """A whole answer of HTTP with a Status in it, as an API server gives it."""
    words, reason, message = _ANSWERS[status]
    content = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": status,
    }
    if status in _RETRIED:
        content["details"] = {"retryAfterSeconds": _PAUSE_SECONDS}
    body = json.dumps(content)
    head = [f"HTTP/1.1 {status} {words}", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    head += [f"Retry-After: {_PAUSE_SECONDS}"] if status in _RETRIED else []
    head += [] if status in _KEPT_OPEN else ["Connection: close"]
    return "\r\n".join([*head, "", body])

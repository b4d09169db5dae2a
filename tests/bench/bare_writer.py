"""The bare writer: the limit that the fleet controller is measured against in the same run.

Run as `python -m tests.bench.bare_writer SERVER CA TOKEN PATH SOURCE ROUND`: it makes one guarded JSON patch for each
replica of a source, as large as the controller's, says `ready`, waits for a line, sends them all through 16
connections, and says how many the server took. It watches nothing, decides nothing and tries nothing again.
"""

import asyncio
import json
import sys
from typing import Any

import aiohttp

from tests.bench.bare import Side

_CONNECTIONS = 16
_PAGE = "500"
_ROUND = "bench.example.com~1round"


def patch(obj: dict[str, Any], number: str) -> bytes:
    """Puts the object's spec, labels and annotations as they are, and an annotation of nobody's."""
    metadata = obj["metadata"]
    texts = [(field, key, text) for field in ("labels", "annotations") for key, text in metadata[field].items()]
    operations = [
        {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]},
        {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
        {"op": "add", "path": "/spec", "value": obj["spec"]},
        *({"op": "add", "path": f"/metadata/{f}/{k.replace('/', '~1')}", "value": text} for f, k, text in texts),
        {"op": "add", "path": f"/metadata/annotations/{_ROUND}", "value": number},
    ]
    return json.dumps(operations).encode()


async def prepared(session: aiohttp.ClientSession, path: str, source: str, number: str) -> list[tuple[str, bytes]]:
    """The URL and the patch of each replica of a source."""
    found: list[tuple[str, bytes]] = []
    query = {"limit": _PAGE, "fieldSelector": f"metadata.name={source},metadata.namespace!=default"}
    root, plural = path.rsplit("/", 1)
    while True:
        async with session.get(path, params=query) as reply:
            listed = await reply.json()
        for obj in listed["items"]:
            url = f"{root}/namespaces/{obj['metadata']['namespace']}/{plural}/{source}"
            found.append((url, patch(obj, number)))
        if not (rest := listed["metadata"].get("continue")):
            return found
        query["continue"] = rest


async def main(server: str, ca: str, token: str, path: str, source: str, number: str) -> None:
    """Prepare, wait for the word, write."""
    taken = 0
    async with Side(server, ca, token).open(_CONNECTIONS) as session:
        todo = await prepared(session, path, source, number)
        print(f"ready {len(todo)}", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        headers = {"Content-Type": "application/json-patch+json"}

        async def write() -> None:
            nonlocal taken
            while todo:
                url, body = todo.pop()
                async with session.patch(url, data=body, headers=headers) as reply:
                    await reply.read()
                    taken += reply.status == 200

        await asyncio.gather(*(write() for _ in range(_CONNECTIONS)))
    print(f"written {taken}", flush=True)
    sys.stdin.read()  # whoever measures asks for the CPU time of a process that is there


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

"""The bare syncer: the limit that the agent is measured against in the same run.

Watches one side and writes to the other through 16 connections; no store, no decisions, no guards. Run as
`python -m tests.bench.bare CLOUD_URL CLOUD_CA CLOUD_TOKEN ROBOT_URL ROBOT_CA ROBOT_TOKEN PATH`, it copies new objects
from the cloud to the robot and changed statuses from the robot to the cloud until it is killed.
"""

import asyncio
import json
import ssl
import sys
from typing import Any

import aiohttp

_CONNECTIONS = 16
_RETRY_SECONDS = 0.1
_PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


class Side:
    """One API server: a session for watches and one, of 16 connections, for writes."""

    def __init__(self, server: str, ca: str, token: str) -> None:
        self.server = server
        self._tls = ssl.create_default_context(cafile=ca)
        self._headers = {"Authorization": f"Bearer {token}"}

    def open(self, limit: int) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=limit, ssl=self._tls)
        return aiohttp.ClientSession(self.server, connector=connector, headers=self._headers)

    async def events(self, path: str) -> Any:
        """Every object that changes from now on. A server ends the watches of a kind that has just been defined."""
        timeout = aiohttp.ClientTimeout(total=None)
        async with self.open(0) as session:
            async with session.get(path, params={"limit": "1"}) as reply:
                version = (await reply.json())["metadata"]["resourceVersion"]
            print("watching", flush=True)
            while True:
                params = {"watch": "true", "resourceVersion": version}
                async with session.get(path, params=params, timeout=timeout, read_bufsize=1 << 22) as reply:
                    async for line in reply.content:
                        event = json.loads(line)
                        version = event["object"]["metadata"]["resourceVersion"]
                        yield event


async def answered(session: aiohttp.ClientSession, method: str, url: str, **request: Any) -> tuple[int, Any]:
    """Status and body of the first answer that is not a refusal for now: a lost write would be waited for forever."""
    while True:
        async with session.request(method, url, **request) as reply:
            if reply.status < 500 and reply.status not in (404, 429):  # 404: the kind has just been defined
                return reply.status, await reply.json()
        await asyncio.sleep(_RETRY_SECONDS)


async def spec_down(cloud: Side, robot: Side, path: str) -> None:
    """Create on the robot what is created in the cloud."""
    queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    async with robot.open(_CONNECTIONS) as session, asyncio.TaskGroup() as tasks:

        async def write() -> None:
            while True:
                obj = await queue.get()
                meta = {k: obj["metadata"][k] for k in ("name", "namespace", "labels") if k in obj["metadata"]}
                body = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": meta, "spec": obj["spec"]}
                target = path.rsplit("/", 1)
                url = f"{target[0]}/namespaces/{meta['namespace']}/{target[1]}"
                status, _ = await answered(session, "post", url, json=body)
                if status == 409:
                    _, existing = await answered(session, "get", f"{url}/{meta['name']}")
                    existing["spec"] = obj["spec"]
                    await answered(session, "put", f"{url}/{meta['name']}", json=existing)

        for _ in range(_CONNECTIONS):
            tasks.create_task(write())
        async for event in cloud.events(path):
            if event["type"] == "ADDED" or (event["type"] == "MODIFIED" and "status" not in event["object"]):
                queue.put_nowait(event["object"])


async def status_up(cloud: Side, robot: Side, path: str) -> None:
    """Patch in the cloud the statuses that change on the robot."""
    queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    async with cloud.open(_CONNECTIONS) as session, asyncio.TaskGroup() as tasks:

        async def write() -> None:
            while True:
                obj = await queue.get()
                meta = obj["metadata"]
                target = path.rsplit("/", 1)
                url = f"{target[0]}/namespaces/{meta['namespace']}/{target[1]}/{meta['name']}/status"
                headers = {"Content-Type": "application/merge-patch+json", "Accept": _PARTIAL}
                await answered(session, "patch", url, data=json.dumps({"status": obj["status"]}), headers=headers)

        for _ in range(_CONNECTIONS):
            tasks.create_task(write())
        async for event in robot.events(path):
            if event["type"] == "MODIFIED" and "status" in event["object"]:
                queue.put_nowait(event["object"])


async def main(arguments: list[str]) -> None:
    cloud, robot, path = Side(*arguments[:3]), Side(*arguments[3:6]), arguments[6]
    await asyncio.gather(spec_down(cloud, robot, path), status_up(cloud, robot, path))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))

"""Draws robot/metrics/dashboard.svg: the dashboard's queries, asked of a real Prometheus while an agent works.

`python -m tests.delivery.picture`, with Debian's package prometheus. Objects are made in the cloud and report their
status on the robot, all the time; the link is cut for a while.
"""

import asyncio
import contextlib
import json
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from html import escape
from pathlib import Path
from typing import Any

import aiohttp

from crsyncer.sandbox.agent_process import AgentProcess
from crsyncer.sandbox.free_ports import free_ports
from tests.bench.stage import Stage, running, stage

METRICS = Path(__file__).parents[2] / "robot/metrics"
BEFORE, CUT, AFTER = 40, 40, 40
"""Seconds with the link, without it, and with it again."""
WIDTH, HEIGHT, GAP = 460, 130, 14
COLOURS = ("#3274d9", "#e0752d", "#56a64b", "#b877d9", "#c4162a", "#8a6d3b", "#1f9e9e", "#777777")

Line = tuple[str, list[tuple[float, float]]]
"""A legend, and values with their times."""


@contextlib.asynccontextmanager
async def prometheus(port: int, agent: int, folder: Path) -> AsyncIterator[str]:
    """A Prometheus that scrapes an agent each second; its address."""
    target = {"targets": [f"127.0.0.1:{agent}"], "labels": {"instance": "r1"}}
    jobs = [{"job_name": "crsyncer", "scrape_interval": "1s", "static_configs": [target]}]
    (folder / "prometheus.yml").write_text(json.dumps({"scrape_configs": jobs}))
    with (folder / "prometheus.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *("prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"),
            f"--web.listen-address=127.0.0.1:{port}",
            stderr=log,
        )
        try:
            yield f"http://127.0.0.1:{port}/api/v1/query_range"
        finally:
            process.terminate()
            await process.wait()


async def work(on: Stage) -> tuple[float, float, float, float]:
    """Make objects and report statuses, about five a second; start, cut, return of the link, end (Unix time)."""
    started = time.time()
    moments = (started, started + BEFORE, started + BEFORE + CUT, started + BEFORE + CUT + AFTER)
    for number in range(BEFORE + CUT + AFTER):
        if number == BEFORE:
            on.cloud_link.cut()
        if number == BEFORE + CUT:
            on.cloud_link.restore()
        await on.cloud.create(on.goal(f"n{number}"))
        known = (await on.robot.list(on.resource))["items"]
        for obj in known[-4:]:
            await on.robot.patch_status(obj, on.status(number))
        await asyncio.sleep(max(0.0, started + number + 1 - time.time()))
    return moments


async def ask(url: str, panel: dict[str, Any], moments: tuple[float, ...]) -> list[Line]:
    """The lines of a panel."""
    lines: list[Line] = []
    async with aiohttp.ClientSession() as session:
        for target in panel["targets"]:
            query = target["expr"].replace("$__rate_interval", "10s").replace("$job", "crsyncer")
            given = {"query": query.replace("$instance", ".*"), "step": "1"}
            async with session.get(url, params=given | {"start": moments[0], "end": moments[-1]}) as reply:
                found = await reply.json()
            for series in found["data"]["result"]:
                labels = series["metric"]
                legend = re.sub(r"\{\{(\w+)\}\}", lambda name: labels.get(name[1], ""), target["legendFormat"])  # noqa: B023
                values = [(float(at), float(value)) for at, value in series["values"] if value != "NaN"]
                lines.append((re.sub(r"\.b\w+\.example\.com", "", legend).removeprefix("r1 "), values))
    return lines


def drawn(panel: dict[str, Any], lines: list[Line], moments: tuple[float, ...], *, left: int, top: int) -> str:
    """One panel: title, band of the cut, lines, and the range of the values."""
    low = min([0.0, *(value for _, values in lines for _, value in values)])
    high = max([low + 1e-9, 0.0, *(value for _, values in lines for _, value in values)])
    scale = WIDTH / (moments[-1] - moments[0])

    def x(at: float) -> str:
        return f"{(at - moments[0]) * scale:.0f}"

    parts = [
        f'<g transform="translate({left},{top})">',
        f'<text y="-6" class="t">{escape(panel["title"])}</text>',
        f'<text x="{WIDTH}" y="-6" class="u">to {high:,.{0 if high >= 100 else 2}f} {escape(unit(panel))}</text>',
        f'<rect x="{x(moments[1])}" width="{CUT * scale:.0f}" height="{HEIGHT}" class="cut"/>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" class="frame"/>',
    ]
    for number, (legend, values) in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(f"{x(at)},{HEIGHT - (value - low) / (high - low) * HEIGHT:.1f}" for at, value in values)
        parts.append(f'<polyline points="{points}" stroke="{colour}"/>')
        column, row = divmod(number, 4)
        parts.append(
            f'<text x="{column * WIDTH // 2}" y="{HEIGHT + 14 + 13 * row}" fill="{colour}">{escape(legend)}</text>'
        )
    return "\n".join([*parts, "</g>"])


def unit(panel: dict[str, Any]) -> str:
    """What the values of a panel are."""
    names = {"s": "s", "ops": "/s", "reqps": "/s", "Bps": "bytes/s", "bytes": "bytes"}
    return names.get(panel["fieldConfig"]["defaults"]["unit"], "")


def picture(panels: list[tuple[dict[str, Any], list[Line]]], moments: tuple[float, ...]) -> str:
    """All panels, two in a row."""
    pitch = HEIGHT + 90
    width, height = 2 * WIDTH + 3 * GAP, (len(panels) + 1) // 2 * pitch + 50
    style = (
        "text{font:11px sans-serif}.t{font-weight:bold;font-size:13px}.u{text-anchor:end;fill:#666}"
        ".frame{fill:none;stroke:#bbb}.cut{fill:#fbe3e3}polyline{fill:none;stroke-width:1.5}"
    )
    head = f"An agent for {BEFORE + CUT + AFTER} seconds. In the shaded {CUT} seconds the link to the cloud is cut."
    body = [
        drawn(panel, lines, moments, left=GAP + number % 2 * (WIDTH + GAP), top=60 + number // 2 * pitch)
        for number, (panel, lines) in enumerate(panels)
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">',
            f'<style>{style}</style><rect width="100%" height="100%" fill="#fff"/><text x="{GAP}" y="24">{head}</text>',
            *body,
            "</svg>\n",
        ]
    )


async def main(out: Path) -> None:
    """Let the agent work, ask, draw."""
    dashboard = json.loads((METRICS / "dashboard.json").read_text())
    server, listen = free_ports(2)
    with tempfile.TemporaryDirectory() as folder:
        async with stage() as on, prometheus(server, listen, Path(folder)) as url:
            await on.fresh_kind()
            agent = AgentProcess(
                on.directory,
                cloud_kubeconfig=on.cloud_link.kubeconfig(on.directory / "cloud.yaml"),
                robot_kubeconfig=on.robot_link.kubeconfig(on.directory / "robot.yaml"),
                flags=("--listen", f"127.0.0.1:{listen}"),
            )
            async with running(agent, on.resource):
                moments = await work(on)
                graphs = [panel for panel in dashboard["panels"] if panel["type"] == "timeseries"]
                panels = [(panel, await ask(url, panel, moments)) for panel in graphs]
            await on.drop_kind()
    out.write_text(picture(panels, moments))
    silent = [panel["title"] for panel, lines in panels if not lines]
    print(f"written: {out}" + (f"; no data for: {', '.join(silent)}" if silent else ""))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else METRICS / "dashboard.svg"))

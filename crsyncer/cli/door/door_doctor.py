"""`crsyncer door doctor`: is everything set up for the front door, and if not, what do I do?"""

import os
from typing import TYPE_CHECKING, Any

import click

from crsyncer.adapters.config import CONFIG, DOOR_VIEW_OPTIONS, DoorSettings, load_door
from crsyncer.cli.output import output_options, show

if TYPE_CHECKING:
    from crsyncer.console.set_up.doctor_report import Check


@click.command("doctor", params=[CONFIG, *DOOR_VIEW_OPTIONS.values()])
@output_options
def door_doctor(output: str, **flags: Any) -> int:
    """Is everything set up for the front door, and if not, what do I do?

    Checks the program HAProxy, the one that runs, its limit of open files, the files in the directory, the door's
    certificate, every shard with its keys, and the right to read Robots. Changes nothing.

    Exit codes: 12 attention (a check fails), else 13 crsyncer door run does not answer, else 11 offline (HAProxy does
    not answer), 10 degraded (a warning), 0 healthy; 1 error, 2 usage.
    """
    settings = load_door(flags, os.environ)

    import asyncio  # slow; `--help` and usage errors must stay fast

    from crsyncer.cli.doctor import render
    from crsyncer.console.set_up.doctor_report import document, exit_code, with_offline

    checks, is_kept = asyncio.run(_examine(settings))
    content = with_offline(document(checks, pid=0 if is_kept else None), checks)
    names = ["/".join(filter(None, (check["name"], check["resource"]))) for check in content["checks"]]
    show(content, output, names=names, text=lambda: "\n".join(render(content)))
    return exit_code(content)


async def _examine(settings: DoorSettings) -> tuple[list["Check"], bool]:
    """All checks, and whether `door run` answers."""
    import asyncio
    import time

    from crsyncer.cli.door import door_checks as judge
    from crsyncer.core.content.annotations import ROOT
    from crsyncer.door.domain.haproxy_template import CERTIFICATE, CONFIGURATION
    from crsyncer.door.door_files import read_text
    from crsyncer.door.gather_door import jwks, shard_clusters
    from crsyncer.door.haproxy_program import check_program
    from crsyncer.door.look import look_at_haproxy, told_by_run
    from crsyncer.door.robots import robot_labels
    from crsyncer.errors import SyncError

    checks, is_kept = [], True
    program: str | SyncError
    try:
        program = await check_program()
    except SyncError as error:
        program = error
    seen = await look_at_haproxy(settings)
    checks += [judge.judge_program(program), *judge.judge_haproxy(seen, await asyncio.to_thread(_limits, seen.workers))]
    texts = {name: read_text(settings.directory / name) for name in (CONFIGURATION, CERTIFICATE)}
    checks += judge.judge_files(settings.directory, texts, time.time())
    async with shard_clusters(settings) as clusters:
        answers = await asyncio.gather(*(jwks(name, each) for name, each in clusters.items()), return_exceptions=True)
        for name, answer in zip(clusters, answers, strict=True):
            checks.append(judge.judge_shard(name, clusters[name].server, answer))
        root = settings.root
        try:
            labels = await robot_labels(clusters[ROOT].request, root.robots, root.robots_namespace)
        except SyncError as error:
            checks.append(judge.unread_robots(error))
        else:
            checks += judge.judge_robots(labels, list(clusters))
    if settings.listen is not None:
        try:
            checks += judge.judge_run(await told_by_run(settings.listen))
        except SyncError as error:
            is_kept = False
            checks.append(judge.not_kept(error))
    return checks, is_kept


def _limits(workers: Any) -> dict[int, int | None]:
    """How many files each worker may have open; None: unknown."""
    import resource

    found: dict[int, int | None] = {}
    for worker in workers:
        try:
            found[worker.pid] = resource.prlimit(worker.pid, resource.RLIMIT_NOFILE)[0]
        except OSError:
            found[worker.pid] = None
    return found

"""`crsyncer check-access`: may the robot's account in the cloud do more than it should?"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from crsyncer.adapters.config import Settings
from crsyncer.adapters.expressions import Expressions
from crsyncer.cli.clusters import CLUSTER_SETTINGS, logins, robot_name
from crsyncer.cli.crd_files import crds_option, read_kinds
from crsyncer.cli.output import output_options, show
from crsyncer.cli.shared import load_settings, settings_options
from crsyncer.console.confinement.manifests import Profile
from crsyncer.console.screens.report import EXIT_CODES
from crsyncer.core.accounts.forbidden_acts import ForbiddenAct
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Json, Side
from crsyncer.core.reports.text import count, plain
from crsyncer.errors import Unsure

_HINT = "are they in force? crsyncer doctor says so to an administrator of the cloud"
_SCHEMA = "crsyncer.check-access/v1"


@click.command(name="check-access", params=settings_options(*CLUSTER_SETTINGS))
@crds_option("The CRDs of the kinds to sync, as files or directories; repeatable.  [default: the robot's]")
@output_options
def check_access(crds: Sequence[Path], output: str, **flags: Any) -> int:
    """May the robot's account in the cloud do more than it should?

    Asks the cloud by access reviews, with the agent's own credential: other namespaces, Secrets, tokens, roles,
    policies, CRDs, and of the synced kinds whatever the agent does not do. Changes nothing. Reviews know no admission
    policies: tokens that a policy must refuse are asked for, as a dry run, and a note names the kinds that only
    policies confine. `crsyncer doctor` tells what the account lacks.

    Exit codes: 12 attention (the account may do too much), 10 degraded (the cloud answers no reviews), 11 offline (it
    does not answer at all), 0 healthy; 1 error, 2 usage.
    """
    settings = load_settings(flags)
    kinds = read_kinds(crds, Profile.SHARED) if crds else None
    robot = robot_name(settings)

    import asyncio  # the clusters cost half a second, and `--help` and wrong flags shall not wait for them

    content = asyncio.run(_review(settings, kinds, robot))
    show(content, output, names=[_name(each) for each in content["findings"]], text=lambda: _render(content))
    return EXIT_CODES[content["health"]]


async def _review(settings: Settings, kinds: Sequence[KindPolicy] | None, robot: str) -> Json:
    from contextlib import aclosing

    from crsyncer.adapters.kube.visit import KubeVisit
    from crsyncer.console.compare import lister
    from crsyncer.core.accounts.forbidden_acts import confined_by_admission, forbidden_acts
    from crsyncer.engine.kinds.account_check import Excess, find_excess

    enter = {side: partial(KubeVisit.enter, *login) for side, login in logins(settings).items()}
    insecure = settings.insecure_skip_tls_verify
    if kinds is None:
        async with aclosing(await enter[Side.ROBOT](insecure=insecure)) as visit:
            configuration = await lister.configuration(visit.request, Expressions, settings.trust)
            configured = configuration.kinds(robot, settings.synced_namespaces)
            kinds = [each for each in configured.values() if not each.problem]
    silence, namespaces = "", settings.synced_namespaces.on(Side.CLOUD)
    async with aclosing(await enter[Side.CLOUD](insecure=insecure)) as visit:
        asked = forbidden_acts(kinds, robot=robot, namespaces=namespaces)
        try:
            await lister.first_answer(visit.request)
            excess = await find_excess(visit.request, asked)
        except Unsure as error:
            excess, silence = Excess(), str(error)
        server = visit.facts.server
    health = "offline" if silence else "attention" if excess.found else "degraded" if excess.unknown else "healthy"
    return {
        "schema": _SCHEMA,
        "health": health,
        "error": silence or None,
        "server": server,
        "robot": robot,
        "namespaces": list(namespaces),
        "kinds": [kind.resource for kind in kinds],
        "confinedByPolicies": confined_by_admission(kinds, robot=robot, namespaces=namespaces),
        "reviews": excess.asked,
        "unanswered": len(excess.unknown),
        "findings": [_finding(forbidden) for forbidden in excess.found],
    }


def _finding(forbidden: ForbiddenAct) -> Json:
    return {
        "verb": forbidden.act.verb,
        "group": forbidden.act.group,
        "resource": forbidden.act.resource,
        "namespace": forbidden.namespace or None,
        "message": f"it {forbidden}",
        "hint": forbidden.remedy,
    }


def _name(finding: Json) -> str:
    return "/".join(filter(None, (finding["verb"], finding["namespace"], finding["resource"])))


def _render(content: Json) -> str:
    """The verdict, and a line for each finding with what to do."""
    lines = [f"{each['message']} -> {each['hint']}" for each in content["findings"]]
    reviews, kinds = count(content["reviews"], "access review"), count(len(content["kinds"]), "kind")
    about = f"{content['server']}, {reviews}, {kinds}"
    if content["unanswered"]:
        lines.append(f"{count(content['unanswered'], 'review')} not answered: what they ask for may be allowed")
    if content["health"] == "healthy" and content["confinedByPolicies"]:
        names = ", ".join(content["confinedByPolicies"])
        lines.append(f"note: only admission policies keep it from other robots' objects of {names}: {_HINT}")
    verdict = {
        "healthy": "CONFINED: no access review allows more than it should",
        "offline": f"OFFLINE: the cloud does not answer: {content['error']}",
        "degraded": "UNKNOWN: the server does not answer all access reviews",
        "attention": f"NOT CONFINED: {count(len(content['findings']), 'finding')}",
    }[content["health"]]
    return "\n".join(plain(line) for line in [f"{verdict} ({about}).", *lines])

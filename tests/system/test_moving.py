"""`crsyncer doctor --from-cr-syncer` on real planes: what the Go cr-syncer leaves there, and a kubeconfig from it."""

from typing import Any

from crsyncer.sandbox.resource import Resource
from tests.system.bed import LABEL, ROBOT, Bed, eventually
from tests.system.commands import edit, run
from tests.system.conftest import MakeBed
from tests.system.examined import Check, bad, checks, diagnosed, doctor

DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")
ARGUMENTS = ["-remote-server", "www.example.com", f"--robot-name={ROBOT}", "--verbose=false"]


def go_cr_syncer(replicas: int = 1) -> dict[str, Any]:
    """Its Deployment, as its chart has it."""
    labels = {"app": "cr-syncer"}
    containers = [{"name": "cr-syncer", "image": "cr-syncer", "args": ARGUMENTS}]
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    return DEPLOYMENT.object("cr-syncer", labels=labels, spec={**spec, "template": template})


async def before_the_move(bed: Bed) -> None:
    """Two copies of the Go cr-syncer, one object that it leaves alone, and its Deployment."""
    for name in ("a", "b"):
        for side in (bed.cloud, bed.robot):
            await side.create(name, spec={"x": 1}, labels={LABEL: ROBOT})
    await bed.robot.create("hand-made", labels={LABEL: ROBOT}, namespace="kube-public")
    await bed.robot.api.create(go_cr_syncer())


async def told(bed: Bed, *names: str) -> tuple[int, dict[str, Any]]:
    """The report on the move, once it has these checks: on a busy machine it may end before a server has answered."""

    async def check() -> tuple[int, dict[str, Any]] | None:
        code, content = await doctor(bed, "--from-cr-syncer")
        return (code, content) if {c["name"] for c in content["checks"]} >= set(names) else None

    found: tuple[int, dict[str, Any]] = await eventually(check, seconds=90, what=f"the doctor tells of {names}")
    return found


async def test_a_robot_with_the_go_cr_syncer_is_told_what_changes_and_nothing_is_written(make_bed: MakeBed):
    bed = await make_bed(start=False, filtered="true")
    await before_the_move(bed)
    try:
        code, content = await told(bed, "cr-syncer", "flags", "copies", "orphans", "cost")
        found: dict[str, Check] = {c["name"]: c for c in content["checks"] if c["resource"] in (None, bed.resource)}
        assert (code, content["health"]) == (12, "attention")
        assert "Deployment default/cr-syncer still runs" in found["cr-syncer"]["message"]
        assert "asks https://www.example.com/apis/core.kubernetes" in found["flags"]["message"]
        assert "adopts 2 in place" in found["copies"]["message"]
        assert "deletes 1 object outside of default" in found["orphans"]["message"]
        assert "writes 3 times on the robot and 0 times in the cloud" in found["cost"]["message"]
        assert all(
            r.method == "GET" or r.path.endswith("/selfsubjectaccessreviews")
            for link in (bed.cloud.link, bed.robot.link)
            for r in link.requests
        )

        async def nothing_fails() -> bool:
            _, content = await doctor(bed, "--from-cr-syncer", "--namespace", "default")
            return not any(c["state"] == "fail" for c in content["checks"])

        await eventually(nothing_fails, seconds=90, what="with one namespace nothing is wrong")
        await bed.start()
        _, content = await told(bed, "cr-syncer")
        [writers] = checks(content, "cr-syncer")
        assert (writers["state"], "runs beside crsyncer" in writers["message"]) == ("fail", True)
    finally:
        await bed.robot.api.delete(go_cr_syncer())


async def test_without_the_cloud_the_robots_half_is_told_all_the_same(make_bed: MakeBed):
    bed = await make_bed(start=False)
    bed.cloud.link.cut()
    _, content = await told(bed, "copies", "cr-syncer")
    [copies] = checks(content, "copies")
    assert (copies["state"], copies["resource"]) == ("unknown", bed.resource)
    assert "connection refused" in copies["message"]
    assert {(c["name"], c["state"]) for c in checks(content, side="robot") if c["name"] == "cr-syncer"} == {
        ("cr-syncer", "ok")
    }
    assert ("cloud", "server", "fail") in bad(content)


async def test_the_kubeconfig_that_it_makes_reaches_the_cloud_and_follows_the_token(make_bed: MakeBed):
    bed = await make_bed(start=False)
    bed.cloud.link.needs_any_credential()
    token, made = bed.directory / "token", bed.directory / "made.yaml"
    token.write_text("not-yet")
    token.chmod(0o600)
    ca, server = str(bed.cloud.plane.ca_file), bed.cloud.link.server.removeprefix("https://")
    given = ("--remote-server", server, "--token-file", str(token), "--certificate-authority", ca)
    said = await run(bed, "cloud-kubeconfig", str(made), *given)
    assert "not-yet" not in said + made.read_text()
    # A plane serves at the root, where a gateway has a path before it.
    edit(made, made.read_text().replace("/apis/core.kubernetes", ""))
    _, content = await doctor(bed, "--cloud-kubeconfig", str(made))
    assert ("cloud", "server", "fail") in bad(content)
    edit(token, bed.cloud.plane.admin_token)
    await diagnosed(bed, [], "--cloud-kubeconfig", str(made))

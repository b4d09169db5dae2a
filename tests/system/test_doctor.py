"""`crsyncer doctor` on real planes: a sound set-up, and one thing after the other that is not."""

import contextlib
import json
import os
import signal
from typing import Any

import yaml

from crsyncer.console.confinement.admission_policies import binding, kind_policy, token_policy
from crsyncer.console.set_up.doctor_admission import BINDINGS, POLICIES
from crsyncer.core.kinds.read_kind import read_policy
from tests.api import ApiError
from tests.system.bed import ROBOT, SYNCER, Bed, crd, eventually
from tests.system.commands import access
from tests.system.conftest import MakeBed
from tests.system.examined import Check, bad, checks, diagnosed, doctor
from tests.system.kinds import account, annotate, another


async def test_a_sound_set_up_is_told_check_by_check_with_an_agent_and_before_its_first_start(make_bed: MakeBed):
    bed = await make_bed(start=False)
    before = sorted(bed.directory.rglob("*"))
    code, content = await diagnosed(bed, [])
    assert (code, content["agent"]) == (13, {"state": "stopped", "pid": None})
    [agent] = checks(content, "agent")
    assert "crsyncer run" in agent["hint"]
    [store] = checks(content, "store")
    assert "does not exist yet" in store["message"]
    # It writes nothing, here and there.
    assert sorted(bed.directory.rglob("*")) == before
    assert all(
        r.method == "GET" or r.path.endswith("/selfsubjectaccessreviews")
        for link in (bed.cloud.link, bed.robot.link)
        for r in link.requests
    )
    for side in ("cloud", "robot"):
        names = {c["name"] for c in checks(content, side=side)}
        assert names >= {"login", "server", "ca", "server-certificate", "clock", "kind", "permissions"}, names
    await bed.start()
    await bed.cloud.create("a")
    await bed.robot.shows("a")
    await bed.settled()
    code, content = await diagnosed(bed, [])
    assert content["agent"] == {"state": "running", "pid": bed.agent.pid}
    [store] = checks(content, "store")
    assert f"in use by process {bed.agent.pid}" in store["message"]
    assert code == {"healthy": 0, "degraded": 10}[content["health"]]
    _, text, _ = await bed.agent.crsyncer("doctor", *access(bed), "--robot-name", ROBOT)
    assert text.splitlines()[0].startswith(content["health"].upper())
    assert max(map(len, text.splitlines())) <= 100
    token = yaml.safe_load((bed.directory / "cloud.yaml").read_text())["users"][0]["user"]["token"]
    assert token not in text
    assert token not in json.dumps(content)


async def test_a_dead_cloud_is_offline_and_does_not_hide_the_robots_results(make_bed: MakeBed):
    bed = await make_bed(start=False)
    bed.cloud.link.cut()
    code, content = await diagnosed(bed, [("cloud", "server", "fail")])
    [server] = checks(content, "server", "cloud")
    assert "connection refused" in server["message"]
    assert server["hint"]
    assert checks(content, "kind", "robot")[0]["state"] == "ok"
    assert (code, content["health"]) == (13, "offline")
    bed.cloud.link.restore()
    bed.cloud.link.half_open()
    bed.robot.link.cut()

    async def both_away() -> bool:
        _, content = await doctor(bed)
        failed = {(side, name) for side, name, state in bad(content) if state == "fail"}
        return (failed, content["health"]) == ({("cloud", "server"), ("robot", "server")}, "degraded")

    await eventually(both_away, seconds=90, what="neither server is found")


async def test_one_trouble_after_the_other_is_named_with_what_it_needs(make_bed: MakeBed):
    """Each is ended before the next, so that all are of one bed."""
    bed = await make_bed(start=False)
    path = bed.directory / "cloud.yaml"
    good = path.read_text()

    # A robot whose CRDs cannot be read: the cloud is asked as far as it can be.
    broken = bed.robot.link.inject("/customresourcedefinitions", status=500)
    _, content = await diagnosed(bed, [("cloud", "kind", "unknown"), ("robot", "annotations", "fail")])
    assert checks(content, "server", "cloud")[0]["state"] == "ok"
    broken.remove()

    # A side that asks for a moment gets it.
    busy = {"message": "storage is (re)initializing"}
    bed.cloud.link.inject("/goals", status=429, body=busy, headers={"Retry-After": "1"}, times=2)
    await diagnosed(bed, [])

    # A gateway that refuses reviews is unknown and not wrong; and it tells no time.
    refusals = [
        bed.cloud.link.inject("/selfsubjectaccessreviews", status=403, body={"message": "no"}),
        bed.cloud.link.inject("/version", status=404),
    ]
    assert (await diagnosed(bed, [("cloud", "clock", "unknown"), ("cloud", "permissions", "unknown")]))[0] == 13
    for refusal in refusals:
        refusal.remove()

    # A credential that is refused.
    bed.cloud.link.kubeconfig(path, token="s3cret-and-wrong")
    code, content = await diagnosed(bed, [("cloud", "server", "fail")])
    assert "401" in checks(content, "server", "cloud")[0]["message"]
    assert (code, content["health"]) == (12, "attention")
    assert "s3cret" not in json.dumps(content)

    # An account that may not do all.
    reads = {"apiGroups": [bed.group], "resources": ["goals"], "verbs": ["list", "watch"]}
    token = await account(bed.cloud.api, bed.group, [reads])
    bed.cloud.link.kubeconfig(path, token=token)
    lives_an_hour = ("cloud", "token", "warn")
    code, content = await diagnosed(bed, [lives_an_hour, ("cloud", "permissions", "fail")])
    assert "may not patch or update goals/status" in checks(content, "permissions", "cloud")[0]["message"]
    assert (code, content["health"]) == (12, "attention")

    # A server that cannot be trusted gets no credential.
    config = yaml.safe_load(good)
    config["clusters"][0]["cluster"]["certificate-authority"] = str(bed.robot.plane.ca_file)
    path.write_text(yaml.safe_dump(config))
    bed.cloud.link.clear()
    code, content = await diagnosed(bed, [("cloud", "server-certificate", "fail"), ("cloud", "server", "fail")])
    [certificate] = checks(content, "server-certificate", "cloud")
    assert "not signed by a CA that the kubeconfig trusts" in certificate["message"]
    assert "fetch certificate-authority-data anew" in certificate["hint"]
    assert (code, content["health"]) == (12, "attention")
    assert bed.cloud.link.requests == []

    # A plug-in that cannot be started.
    config = yaml.safe_load(good)
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/no/such/helper", "interactiveMode": "Never"}
    config["users"][0]["user"] = {"exec": plugin}
    path.write_text(yaml.safe_dump(config))

    async def said() -> bool:  # on a busy machine the first question may take longer than the doctor waits for it
        code, content = await diagnosed(bed, [("cloud", "login", "fail")])
        assert code == 12
        return "/no/such/helper" in checks(content, "login", "cloud")[0]["message"]

    await eventually(said, seconds=90, what="the plug-in's own failure")

    # The settings are told with where they come from.
    path.write_text(good)
    settings = bed.directory / "config.yaml"
    settings.write_text("log:\n  level: debug\n")
    _, content = await doctor(bed, "--config", str(settings))
    [check] = checks(content, "config")
    assert f"{settings} is valid" in check["message"]
    assert f"log.level from {settings}:2" in check["message"]
    assert "robotName from --robot-name" in check["message"]


async def test_an_admission_policy_that_is_not_in_force_is_told_to_who_may_read_it(make_bed: MakeBed):
    bed = await make_bed(start=False)
    kind = read_policy(crd(bed.group), ROBOT)
    assert kind is not None
    policy = kind_policy(kind)
    name = policy["metadata"]["name"]
    tokens = token_policy()["metadata"]["name"]
    for each in (policy, token_policy()):
        for collection, content in ((POLICIES, each), (BINDINGS, binding(each, audit=False))):
            with contextlib.suppress(ApiError):  # other tests on these planes may have made that of tokens
                await bed.cloud.api.request("POST", collection.path, json=content)
    _, content = await diagnosed(bed, [])
    assert [check["state"] for check in checks(content, "confinement")] == ["ok", "ok"]
    await bed.cloud.api.request("DELETE", f"{BINDINGS.path}/{name}")
    assert (await diagnosed(bed, [("cloud", "confinement", "fail")]))[0] == 12
    await bed.cloud.api.request("POST", BINDINGS.path, json=binding(policy, audit=False))
    for collection in (BINDINGS, POLICIES):
        await bed.cloud.api.request("DELETE", f"{collection.path}/{tokens}")
    code, content = await diagnosed(bed, [("cloud", "confinement", "fail")])
    [failed] = [check for check in checks(content, "confinement") if check["state"] == "fail"]
    assert (code, failed["message"].startswith("no admission policy confines the tokens")) == (12, True)
    for collection in (BINDINGS, POLICIES):
        await bed.cloud.api.request("DELETE", f"{collection.path}/{name}")


async def test_crds_that_differ_or_are_missing_and_annotations_that_are_wrong_are_found(make_bed: MakeBed):
    bed = await make_bed(start=False, cloud_crd=False)
    await another(bed, filtered="perhaps")
    await another(bed, "visits")
    await annotate(bed, resource=f"visits.{bed.group}", status_subtre="x")
    wrong = [("cloud", "kind", "goals"), ("robot", "annotations", "tasks"), ("robot", "annotations", "visits")]

    def named(content: dict[str, Any]) -> dict[tuple[str | None, str, str], Check]:
        troubled = [c for c in content["checks"] if c["resource"] and c["state"] != "ok"]
        return {(c["side"], c["name"], c["resource"].split(".")[0]): c for c in troubled}

    async def told() -> tuple[int, dict[str, Any]] | None:
        code, content = await doctor(bed)
        return (code, content) if set(named(content)) == set(wrong) else None

    code, content = await eventually(told, seconds=90, what=f"the doctor finds {wrong}")
    found = named(content)
    assert "is not served" in found["cloud", "kind", "goals"]["message"]
    assert "filter-by-robot-name" in found["robot", "annotations", "tasks"]["message"]
    assert SYNCER + "status-subtre" in found["robot", "annotations", "visits"]["message"]
    assert (code, content["health"]) == (12, "attention")


async def test_a_store_that_is_broken_or_open_to_others_is_told(bed: Bed):
    await bed.agent.stop()
    _, content = await doctor(bed)
    assert "ok, schema" in checks(content, "store")[0]["message"]
    (bed.agent.state_dir / "state.db").chmod(0o644)
    code, content = await doctor(bed)
    [disk] = checks(content, "disk")
    assert (code, disk["state"]) == (12, "fail")
    assert "chmod 600" in disk["hint"]
    (bed.agent.state_dir / "state.db").write_bytes(b"nonsense" * 1000)
    for extra in bed.agent.state_dir.glob("state.db-*"):
        extra.unlink()
    _, content = await doctor(bed)
    [store] = checks(content, "store")
    assert (store["state"], "moves it aside" in store["hint"]) == ("warn", True)


async def test_an_agent_that_hangs_is_told_and_the_rest_is_checked_all_the_same(bed: Bed):
    os.kill(bed.agent.pid, signal.SIGSTOP)
    try:
        code, content = await diagnosed(bed, [])
    finally:
        os.kill(bed.agent.pid, signal.SIGCONT)
    assert code == 12
    [agent] = checks(content, "agent")
    assert (agent["state"], "did not answer" in agent["message"]) == ("fail", True)
    assert content["agent"]["state"] == "running"

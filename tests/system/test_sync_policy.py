"""The CRD of SyncPolicies on a real API server: what it takes, what it refuses, and what it sets by itself."""

import base64
import json

import pytest
import yaml

from crsyncer.sandbox.resource import Resource
from tests.api import Api, ApiError
from tests.core.sync_policies import FULL, MINIMAL, WRONG, edited
from tests.delivery.policy_reference import policies
from tests.leaks.rows import unpacked
from tests.system.bed import ROBOT, eventually
from tests.system.commands import access, ask, run
from tests.system.conftest import MakeBed
from tests.system.examined import checks, diagnosed
from tests.system.kinds import policy_of, row, set_policy, until_row


async def test_the_api_server_takes_whole_policies_and_sets_no_defaults_but_those_of_deletion(policy_api: Api) -> None:
    for policy in (FULL, MINIMAL):
        created = await policy_api.create(policy)
        assert created["spec"] == policy["spec"]
        await policy_api.delete(policy)
    created = await policy_api.create(edited(MINIMAL, "spec", "deletion", value={}))
    assert created["spec"]["deletion"] == {"mode": "async", "gracePeriod": "1h", "propagation": "background"}
    await policy_api.patch_status(MINIMAL, {"conditions": [{"type": "Ready", "status": "True"}], "more": 1})
    assert (await policy_api.get(MINIMAL))["status"]["more"] == 1


async def test_the_api_server_refuses_what_the_reader_refuses_without_a_cluster(policy_api: Api) -> None:
    answers = {str(wrong): await _refusal(policy_api, wrong.policy) for wrong in WRONG if wrong.server}
    assert [said for said, answer in answers.items() if answer != 422] == []


async def test_the_api_server_takes_each_policy_of_the_page_as_it_stands(policy_api: Api) -> None:
    path, strict = policy_api.path(MINIMAL, name=False), {"fieldValidation": "Strict", "dryRun": "All"}
    for title, text in policies().items():
        status, body = await policy_api.request("POST", path, params=strict, json=yaml.safe_load(text))
        assert status == 201, (title, body)


async def test_the_kind_of_a_policy_cannot_be_changed(policy_api: Api) -> None:
    await policy_api.create(FULL)
    for field in ("group", "resource"):
        with pytest.raises(ApiError, match="the kind of a policy cannot be changed"):
            await policy_api.patch(FULL, {"spec": {"resource": {field: "other"}}})
    changed = await policy_api.patch(FULL, {"spec": {"resource": {"version": "v2"}}})
    assert changed["spec"]["resource"]["version"] == "v2"
    await policy_api.delete(FULL)


async def test_C1_3_S2_1_a_policy_has_a_kind_synced_while_the_agent_runs(policy_api: Api, make_bed: MakeBed) -> None:
    bed = await make_bed(source=None, start=False)
    await bed.start(state=None)
    for name, zone in (("out", "c"), ("in", "a")):
        await bed.cloud.create(name, spec={"x": 1}, labels={"tier": "edge", "zone": zone})
    in_zones = {"key": "zone", "operator": "In", "values": ["b", "a"]}
    draft = {"key": "draft", "operator": "DoesNotExist"}
    selector = {"matchLabels": {"tier": "edge"}, "matchExpressions": [in_zones, draft]}
    policy = await set_policy(policy_api, bed, specSource="cloud", filter={"selector": selector})
    await until_row(bed, selector="!draft,tier=edge,zone in (a,b)")
    await bed.robot.shows("in", spec={"x": 1})
    await bed.robot.set_status("in", {"done": True})
    await bed.cloud.shows("in", status={"done": True})
    assert await bed.robot.names() == {"in"}
    await _until_ready(policy_api, policy, "True", "Active", "")
    await policy_api.patch(policy, {"spec": {"naming": {"name": "{nope}"}}})
    said = "spec.naming.name has {nope}; allowed: {namespace}, {name}, {robot}, {cluster}, {hash}"
    await until_row(bed, state="misconfigured", message=f"SyncPolicy {bed.group}: {said}")
    await _until_ready(policy_api, policy, "False", "Misconfigured", said)
    await policy_api.patch(policy, {"spec": {"naming": None, "filter": None}})
    await bed.robot.shows("out", spec={"x": 1})
    await policy_api.delete(policy)

    async def stopped() -> bool:
        return await row(bed) is None

    await eventually(stopped, what="the kind is not ours any more")
    assert await bed.robot.names() == {"in", "out"}


async def test_C4_1_C3_2_steps_and_local_fields_travel_between_real_api_servers(
    policy_api: Api, make_bed: MakeBed
) -> None:
    bed = await make_bed()
    down: list[dict] = [
        {"path": "/spec/url", "regex": {"pattern": "^http:", "replacement": "https:"}},
        {"path": "/spec/x", "cel": "value * 2"},
        {"path": "/metadata/labels/who", "template": "{robot}-{name}"},
        {"path": "/metadata/annotations/of", "template": "{cluster}-{hash}"},
    ]
    up = [{"path": "/status/word", "template": "{name} {/spec/x}"}]
    policy = await set_policy(policy_api, bed, conflict="keepLocal", mutations={"down": down, "up": up})
    await bed.cloud.create("a", spec={"x": 1, "url": "http://b"})
    copy = await bed.robot.shows("a", spec={"x": 2, "url": "https://b"})
    assert copy["metadata"]["labels"]["who"].endswith("-a")
    assert await run(bed, "diff", *access(bed), "--robot-name", ROBOT) == ""
    await bed.robot.patch("a", {"spec": {"url": "ftp://c", "mine": 1}})
    await bed.robot.set_status("a", {"n": 1})
    await bed.cloud.shows("a", status={"n": 1, "word": "a 2"})
    await bed.cloud.patch("a", {"spec": {"x": 5}})
    await bed.robot.shows("a", spec={"x": 10, "url": "ftp://c", "mine": 1})
    await policy_api.patch(policy, {"spec": {"mutations": {"down": down[1:2] * 2}}})
    await bed.robot.shows("a", spec={"x": 20, "url": "http://b", "mine": 1})
    await bed.cloud.patch("a", {"spec": {"x": "text"}})
    await bed.agent.until(lambda status: [hold["reason"] for hold in status["holds"]] == ["MutationFailed"])
    await bed.cloud.patch("a", {"spec": {"x": 1}})
    await bed.robot.shows("a", spec={"x": 4, "url": "http://b", "mine": 1})
    await bed.agent.until(lambda status: status["holds"] == [])


async def test_C5_6_a_secret_travels_and_the_agent_keeps_its_value_nowhere(policy_api: Api, make_bed: MakeBed) -> None:
    bed = await make_bed()
    labels, value = {"bed": bed.group}, base64.b64encode(f"hunter2-{bed.group}".encode()).decode()
    (bed.directory / "secret-value").write_text(value)  # `make leaks` looks for it everywhere
    selector = {"matchLabels": labels}
    resource = {"group": "", "resource": "secrets"}
    policy = policy_of(bed, resource=resource, specSource="cloud", filter={"selector": selector})
    name = bed.group.replace(".", "-")
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "data": {"password": value},
    }
    for each in (bed.cloud.api, policy_api):
        each.learn(Resource("", "v1", "secrets", "Secret", namespaced=True))
    await policy_api.create(policy)
    await bed.cloud.api.create(secret)

    async def arrived() -> bool:
        found = await policy_api.find(secret)
        return found is not None and found["data"] == secret["data"]

    await eventually(arrived, what="the copy of the Secret")
    told = json.dumps([await bed.agent.status(), await ask(bed, "explain", "secrets", name)]).encode()
    await bed.agent.kill()  # or it would delete the copy where it has not heard of the policy's end
    paths = [path for path in bed.agent.state_dir.iterdir() if path.is_file()]
    files = {path.name: b"\n".join([path.read_bytes(), *unpacked(path)]) for path in paths}
    assert "digest.key" in files
    assert [place for place, data in {**files, "told": told}.items() if value.encode() in data] == []
    await policy_api.delete(policy)
    for each in (bed.cloud.api, policy_api):
        await each.delete(secret)


async def test_C2_3_C2_5_copies_have_names_of_their_own_on_real_api_servers(policy_api: Api, make_bed: MakeBed) -> None:
    bed = await make_bed()
    policy = await set_policy(policy_api, bed, naming={"name": "copy-{name}"})
    await bed.robot.create("copy-b", spec={"x": 7})
    await bed.cloud.create("a", spec={"x": 1})
    await bed.robot.shows("copy-a", spec={"x": 1})
    await bed.robot.set_status("copy-a", {"n": 1})
    await bed.cloud.shows("a", status={"n": 1})
    await bed.cloud.create("b", spec={"x": 2})
    await bed.agent.until(lambda status: [hold["reason"] for hold in status["holds"]] == ["NameTaken"])
    await policy_api.patch(policy, {"spec": {"naming": {"name": "other-{name}"}}})
    await bed.robot.shows("other-b", spec={"x": 2})
    await bed.cloud.patch("a", {"spec": {"x": 5}})
    await bed.robot.shows("copy-a", spec={"x": 5})
    await bed.cloud.delete("a")

    async def gone() -> bool:
        return await bed.robot.names() == {"copy-b", "other-b"}

    await eventually(gone, what="the copy has gone with its original")
    await bed.agent.until(lambda status: status["holds"] == [])
    await policy_api.delete(policy)


async def _until_ready(policy_api: Api, policy: dict, *wanted: str) -> None:
    """Wait until the condition Ready of a policy has this status, reason and message."""

    async def shown() -> bool:
        conditions = ((await policy_api.get(policy)).get("status") or {}).get("conditions", [])
        return [tuple(each[key] for key in ("status", "reason", "message")) for each in conditions] == [wanted]

    await eventually(shown, what=f"the condition of {policy['metadata']['name']} is {wanted}")


async def _refusal(policy_api: Api, policy: dict) -> int:
    """How creating a policy is refused; 0: it is not."""
    try:
        await policy_api.create(policy)
    except ApiError as error:
        return error.status
    await policy_api.delete(policy)
    return 0


async def test_C5_C1_4_a_config_map_that_an_object_names_travels_with_it(policy_api: Api, make_bed: MakeBed) -> None:
    bed = await make_bed()
    named = {
        "id": "maps",
        "origin": "cloud",
        "resource": {"group": "", "resource": "configmaps"},
        "object": {"reference": "/spec/maps/*"},
    }
    policy = await set_policy(policy_api, bed, related=[named])
    goal = bed.cloud.goal("a", spec={"maps": ["first", "second"]})
    namespace = goal["metadata"]["namespace"]

    def config_map(name: str, value: str) -> dict:
        metadata = {"name": f"{name}", "namespace": namespace}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"x": value}}

    async def shows(name: str, value: str | None) -> None:
        async def check() -> bool:
            found = await bed.robot.api.find(config_map(name, ""))
            return (None if found is None else found["data"]["x"]) == value

        await eventually(check, what=f"the robot's ConfigMap {name} has {value}")

    first, second, other = (config_map(name, "1") for name in ("first", "second", "other"))
    for each in (first, second, other):
        await bed.cloud.api.create(each)
    await bed.cloud.api.create(goal)
    await shows("first", "1")
    await shows("second", "1")
    await bed.cloud.api.patch(first, {"data": {"x": "2"}})
    await shows("first", "2")
    await bed.settled()
    code, out, error = await bed.agent.crsyncer("diff", "configmaps", "--json", *access(bed), "--robot-name", ROBOT)
    [compared] = json.loads(out)["kinds"]
    assert (code, compared["differences"], compared["objects"]["cloud"]) == (0, [], 2), error

    async def seen() -> bool:
        entries = (await ask(bed, "explain", "goals", "a"))["related"]
        copies = [(each["name"], each["copy"]["state"]) for entry in entries for each in entry["objects"]]
        return copies == [("first", "seen"), ("second", "seen")]

    await eventually(seen, what="both copies are seen")
    _, content = await diagnosed(bed, [])
    assert [c["state"] for c in checks(content, "kind") if c["resource"] == "configmaps"] == ["ok", "ok"]
    await bed.cloud.patch("a", {"spec": {"maps": ["second"]}})
    await shows("first", None)
    await bed.cloud.delete("a")
    await shows("second", None)
    assert await bed.robot.api.find(other) is None
    for each in (first, second, other):
        assert await bed.cloud.api.find(each) is not None
        await bed.cloud.api.delete(each)
    await policy_api.delete(policy)


async def test_C7_a_kind_has_other_names_and_another_scope_in_the_cloud(policy_api: Api, make_bed: MakeBed) -> None:
    bed = await make_bed(source="robot", cloud_crd={"plural": "tasks", "cluster": True}, start=False)
    projection, naming = {"resource": "tasks", "kind": "Task"}, {"name": "{namespace}-{name}"}
    await policy_api.create(policy_of(bed, projection=projection, naming=naming))
    await bed.start(state=None)
    await until_row(bed, state="syncing", cloudResource=f"tasks.{bed.group}")
    await bed.robot.create("a", spec={"x": 1})
    copy = await bed.cloud.shows("default-a", spec={"x": 1})
    assert (copy["kind"], "namespace" in copy["metadata"]) == ("Task", False)
    await bed.cloud.set_status("default-a", {"n": 1})
    await bed.robot.shows("a", status={"n": 1})
    await bed.robot.patch("a", {"spec": {"x": 2}})
    await bed.cloud.shows("default-a", spec={"x": 2})
    explained = await ask(bed, "explain", f"goals.{bed.group}", "a", "--json")
    assert explained["copy"] == {"namespace": "", "name": "default-a"}
    await bed.robot.delete("a")
    await bed.cloud.gone("default-a")

"""Settings, from real files: where a value comes from, and one clear line for whatever is wrong."""

import json
from pathlib import Path

import pytest

from crsyncer.adapters.config import OPTIONS, Settings
from crsyncer.core.kinds.namespaces import EVERYWHERE, Namespaces, same_names
from crsyncer.errors import ConfigError
from tests.adapters.config_kit import FIELDS, KEYS, file, flags, kubeconfig, load, refusal, state_dir

# Each setting: how it is written in each place, and what that means. The default is None where it is required.
TABLE = {
    "robot_name": (("r-flag", "r-flag"), ("r-env", "r-env"), ("r-file", "r-file"), ""),
    "cloud_kubeconfig": (("cloud-flag", None), ("cloud-env", None), ("cloud-file", None), None),
    "robot_kubeconfig": (("robot-flag", None), ("robot-env", None), ("robot-file", None), None),
    "cloud_context": (("one", "one"), ("two", "two"), ("three", "three"), ""),
    "robot_context": (("one", "one"), ("two", "two"), ("three", "three"), ""),
    "insecure_skip_tls_verify": (("true", True), ("false", False), ("True", True), False),
    "require_confinement": (("true", True), ("false", False), ("True", True), False),
    "state_dir": (("s-flag", None), ("s-env", None), ("s-file", None), Path("/var/lib/crsyncer")),
    "listen": (
        ("127.0.0.1:1", ("127.0.0.1", 1)), ("[::1]:2", ("::1", 2)), ("off", None), ("127.0.0.1", 9464),
    ),
    "namespaces": ((("a", "b", "a"), ("a", "b")), ("c, d", ("c", "d")), ("[e, f]", ("e", "f")), ()),
    "namespace_map": (
        (("a=b", "c=d", "a=b"), (("a", "b"), ("c", "d"))),
        ("e=f, g=e", (("e", "f"), ("g", "e"))),
        ("{h: i, j: j}", (("h", "i"), ("j", "j"))),
        (),
    ),
    "trust": (
        (("configmaps", "api"), ("configmaps", "api")),
        ("leases.coordination.k8s.io, *", ("leases.coordination.k8s.io", "*")),
        ("[a.b, c]", ("a.b", "c")),
        (),
    ),
    "report_namespace": (("fleet", "fleet"), ("off", None), ("reports", "reports"), "default"),
    "control_group": (("admins", "admins"), ("wheel", "wheel"), ("fleet.ops", "fleet.ops"), ""),
    "log_format": (("json", "json"), ("text", "text"), ("JSON", "json"), "text"),
    "log_level": (("debug", "debug"), ("warning", "warning"), ("error", "error"), "info"),
    "watch_timeout": (("30", 30), ("600", 600), ("77", 77), 300),
    "audit_interval": (("10", 10), ("604800", 604_800), ("99", 99), 21_600),
    "boot_id_file": (("b-flag", None), ("b-env", None), ("b-file", None), Path("/proc/sys/kernel/random/boot_id")),
}  # fmt: skip


def meaning(place: Path, written, value):
    """A path means the file of that name in the working directory."""
    return place / written if value is None and written != "off" else value


def test_the_table_of_this_test_is_complete():
    assert list(TABLE) == FIELDS


@pytest.mark.parametrize("field", FIELDS)
def test_flag_beats_environment_beats_file_beats_default(place, field):
    variables = VARIABLES[field]
    flag, variable, in_file, default = TABLE[field]
    chosen, environ = flags(place), dict[str, str]()
    if default is None:
        default = place / chosen[field]
    else:
        assert getattr(load(chosen, environ), field) == default
    chosen.pop(field, None)
    section, _, key = KEYS[field].rpartition(".")
    chosen["config"] = file(place, f"{section}: {{{key}: {in_file[0]}}}" if section else f"{key}: {in_file[0]}")
    assert getattr(load(chosen, environ), field) == meaning(place, *in_file)
    for name in reversed(variables):
        environ[name] = variable[0]
        assert getattr(load(chosen, environ), field) == meaning(place, *variable)
    environ |= dict.fromkeys(variables, "")
    assert getattr(load(chosen, environ), field) == meaning(place, *in_file), "an empty variable is one that is not set"
    environ |= dict.fromkeys(variables, variable[0])
    chosen[field] = flag[0]
    assert getattr(load(chosen, environ), field) == meaning(place, *flag)


VARIABLES: dict[str, list[str]] = {
    "robot_name": ["CRSYNCER_ROBOT_NAME"],
    "cloud_kubeconfig": ["CRSYNCER_CLOUD_KUBECONFIG"],
    "robot_kubeconfig": ["CRSYNCER_ROBOT_KUBECONFIG"],
    "cloud_context": ["CRSYNCER_CLOUD_CONTEXT"],
    "robot_context": ["CRSYNCER_ROBOT_CONTEXT"],
    "insecure_skip_tls_verify": ["CRSYNCER_INSECURE_SKIP_TLS_VERIFY"],
    "require_confinement": ["CRSYNCER_REQUIRE_CONFINEMENT"],
    "state_dir": ["CRSYNCER_STATE_DIR", "STATE_DIRECTORY"],
    "listen": ["CRSYNCER_LISTEN"],
    "namespaces": ["CRSYNCER_NAMESPACES"],
    "namespace_map": ["CRSYNCER_NAMESPACE_MAP"],
    "trust": ["CRSYNCER_TRUST"],
    "report_namespace": ["CRSYNCER_REPORT_NAMESPACE"],
    "control_group": ["CRSYNCER_CONTROL_GROUP"],
    "log_format": ["CRSYNCER_LOG_FORMAT"],
    "log_level": ["CRSYNCER_LOG_LEVEL"],
    "watch_timeout": ["CRSYNCER_WATCH_TIMEOUT"],
    "audit_interval": ["CRSYNCER_AUDIT_INTERVAL"],
    "boot_id_file": ["CRSYNCER_BOOT_ID_FILE"],
}
"""The contract; the first one that is not empty counts."""


def test_the_config_file_may_be_named_by_a_variable(place):
    environ = {"CRSYNCER_CONFIG": file(place, "robotName: r7")}
    settings = load(flags(place), environ)
    assert (settings.robot_name, settings.config_file) == ("r7", place / "c.yaml")


def test_of_several_runtime_directories_of_systemd_the_first_is_ours(place):
    assert load(flags(place), {"RUNTIME_DIRECTORY": "/run/a:/run/b"}).runtime_dir == Path("/run/a")
    assert load(flags(place), {}).runtime_dir is None


def test_of_several_state_directories_of_systemd_the_first_is_ours(place):
    assert load(flags(place), {"STATE_DIRECTORY": "/var/lib/a:/var/lib/b"}).state_dir == Path("/var/lib/a")


def test_our_own_variable_beats_systemds(place):
    environ = {"CRSYNCER_STATE_DIR": "/a", "STATE_DIRECTORY": "/b"}
    assert load(flags(place), environ).state_dir == Path("/a")


def test_paths_in_the_file_start_at_the_file(place, monkeypatch):
    path = file(place, "stateDir: state")
    monkeypatch.chdir("/")
    assert load(flags(place, config=path), {}).state_dir == place / "state"


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "cloud:\nrobotName:\nnamespaces: []\n", 'robotName: ""'])
def test_an_empty_file_or_key_sets_nothing(place, text):
    settings = load(flags(place, config=file(place, text)), {})
    assert (settings.robot_name, settings.namespaces) == ("", ())


def test_a_number_can_be_a_robots_name(place):
    assert load(flags(place, config=file(place, "robotName: 007")), {}).robot_name == "007"


def test_loading_touches_nothing(place):
    before = sorted(place.iterdir())
    load(flags(place, state_dir="state"), {})
    assert sorted(place.iterdir()) == before


def test_every_file_that_matters_is_listed(place):
    (place / "k").write_text(json.dumps(kubeconfig(tokenFile="token", **{"client-key": "/pki/key"})))
    settings = load(flags(place, cloud_kubeconfig="k", config=file(place, "")), {})
    assert settings.files == (
        place / "c.yaml", place / "k", Path("/pki/key"), place / "token", place / "robot-default",
    )  # fmt: skip


LABEL = "at most 63 letters"
WRONG_VALUES = {
    "robot_name": [("a" * 64, LABEL), ("-a", LABEL), ("a b", LABEL), ("a/b", LABEL), ("ü", LABEL), ("a\n", LABEL)],
    "cloud_kubeconfig": [("nope", "No such file")],
    "robot_kubeconfig": [("nope", "No such file")],
    "cloud_context": [("nine", "four, one, three, two")],
    "robot_context": [("nine", "four, one, three, two")],
    "insecure_skip_tls_verify": [("maybe", "true")],
    "require_confinement": [("maybe", "true")],
    "state_dir": [("cloud-default", "a directory")],
    "listen": [
        (wrong, "HOST:PORT") for wrong in ("x", "9464", ":9464", "h:", "h:p", "h:70000", "::1:9", "a b:1", "on")
    ],
    "namespaces": [("Prod", "lower-case"), ("a/b", "lower-case"), ("a" * 64, "lower-case"), (",", "lower-case")],
    "namespace_map": [
        *((wrong, "lower-case") for wrong in ("Prod=default", "a=b/c", "a=", "=b", "a=b=c")),
        *((wrong, "each name of a side once") for wrong in ("a=b,c=b", "a=b,a=c")),
    ],
    "trust": [(wrong, "or api, or *") for wrong in ("Secrets", "a/b", "**", "a..", ".a", ",")],
    "report_namespace": [(wrong, "lower-case") for wrong in ("Fleet", "a/b", "a" * 64)],
    "control_group": [(wrong, "the name of a group") for wrong in ("a b", "0", "a:b", "x" * 33)],
    "log_format": [("xml", "'text', 'json'")],
    "log_level": [("loud", "'debug', 'info', 'warning', 'error'")],
    "watch_timeout": [(wrong, "30 to 600") for wrong in ("29", "601", "-30", "5m", "30.5", "٣٠٠")],
    "audit_interval": [(wrong, "10 to 604800") for wrong in ("9", "604801", "6h", "-60", "1e3")],
    "boot_id_file": [(".", "a file")],
}
WRONG = [(field, *case) for field, cases in WRONG_VALUES.items() for case in cases]


def test_each_setting_has_wrong_values():
    assert list(WRONG_VALUES) == FIELDS


@pytest.mark.parametrize(("field", "wrong", "allowed"), WRONG)
def test_a_wrong_value_is_one_line_that_names_place_and_what_is_allowed(place, field, wrong, allowed):
    option = OPTIONS[KEYS[field]]
    flag, variable = option.opts[0], VARIABLES[field][0]
    if not option.is_flag:
        message = refusal(flags(place) | {field: (wrong,) if option.multiple else wrong})
        assert flag in message
        assert allowed in message
    chosen = {name: value for name, value in flags(place).items() if name != field}
    # In the variable, white space separates namespaces, and a final new line is one more way to write them.
    message = refusal(chosen, {variable: wrong})
    assert flag in message
    assert allowed in message
    if message.startswith("Invalid value"):
        assert message.startswith(f"Invalid value for '{flag}' (env var: {', '.join(map(repr, VARIABLES[field]))}): ")
    section, _, key = KEYS[field].rpartition(".")
    line = f"{key}: {json.dumps([wrong] if option.multiple else wrong)}"
    if field == "namespace_map":
        pairs = [map(json.dumps, pair.split("=", 1)) for pair in wrong.split(",")]
        line = f"{key}: {{{', '.join(map(': '.join, pairs))}}}"
    path = file(place, f"# a comment\n{section}:\n  {line}\n" if section else f"# a comment\n\n{line}\n")
    message = refusal(chosen | {"config": path})
    assert message.startswith(f"{path}:3: {KEYS[field]}")
    assert allowed in message
    assert "allowed" in message


@pytest.mark.parametrize("field", [field for field in FIELDS if not OPTIONS[KEYS[field]].is_flag])
def test_an_empty_flag_is_refused(place, field):
    assert refusal(flags(place) | {field: ("",) if OPTIONS[KEYS[field]].multiple else ""}).startswith("Invalid value")


@pytest.mark.parametrize("wrong", ["a", ",", "a b"])
def test_a_pair_of_namespaces_has_two_names(place, wrong):
    assert "CLOUD=ROBOT" in refusal(flags(place, namespace_map=(wrong,)))


def test_which_namespaces_are_synced_is_a_list_or_a_map_and_not_both(place):
    assert load(flags(place), {}).synced_namespaces == EVERYWHERE
    listed = load(flags(place, namespaces=("a", "b")), {}).synced_namespaces
    assert listed == same_names(("a", "b"))
    both = load(flags(place, namespace_map=("robot-r1=default", "all=all")), {}).synced_namespaces
    assert both == Namespaces(("all", "robot-r1"), ("all", "default"))
    assert load(flags(place, namespace_map=("a=a", "b=b")), {}).synced_namespaces == listed
    path = file(place, "robotName: r1\nnamespaceMap: {robot-r1: default}\n")
    message = refusal(flags(place, namespaces=("a",), config=path))
    assert message.startswith(f"--namespace and {path}:2: namespaceMap exclude each other; allowed: one of them")


WRONG_FILES = {
    "robotname: r1": ":1: robotname is not a known key; did you mean robotName?; allowed: robotName, cloud.kubeconfig",
    "cloud:\n  kubeConfig: x": ":2: cloud.kubeConfig is not a known key; did you mean cloud.kubeconfig?",
    "zzz: 1": ":1: zzz is not a known key; allowed: ",
    "? [a]\n: 1": ":1: ? is not a known key",
    "cloud: x": ":1: cloud is not a mapping",
    "- a": ":1: the file is not a mapping",
    "just text": ":1: the file is not a mapping",
    "robotName: a\nrobotName: b": ":2: robotName is given twice",
    "log: {level: info}\nlog: {format: json}": ":2: log is given twice",
    "robotName: []": ":1: robotName has the wrong shape; allowed: one value",
    "namespaces: {}": ":1: namespaces has the wrong shape; allowed: a list of names",
    "namespaceMap: ''": ":1: namespaceMap has the wrong shape",
    "robotName: [a]": ":1: robotName has the wrong shape; allowed: one value",
    "namespaces: a": ":1: namespaces has the wrong shape; allowed: a list of names",
    "namespaces: [[a]]": ":1: namespaces has the wrong shape",
    "namespaces: {a: b}": ":1: namespaces has the wrong shape",
    "namespaceMap: a=b": ":1: namespaceMap has the wrong shape; allowed: CLOUD: ROBOT lines, one name each",
    "namespaceMap: [a=b]": ":1: namespaceMap has the wrong shape",
    "namespaceMap: {a: [b]}": ":1: namespaceMap has the wrong shape",
    "namespaceMap: {[a]: b}": ":1: namespaceMap has the wrong shape",
    "a: [": ":2: not YAML (",
    "a: 1\nb: 'x\n": ":3: not YAML (",
    "a: 1\n---\nb: 2": ":2: not YAML (",
    "a: \x01": ": not YAML (",
    "[" * 1000: ":1: not YAML (nested deeper than 50 levels)",
}


@pytest.mark.parametrize("text", WRONG_FILES, ids=range(len(WRONG_FILES)))
def test_a_wrong_file_is_one_line_that_names_the_line(place, text):
    message = refusal(flags(place, config=file(place, text)))
    assert message.removeprefix("--config: ").startswith(f"{place}/c.yaml{WRONG_FILES[text]}")
    assert "allowed: " in message


def test_a_file_that_cannot_be_read_is_named(place):
    assert refusal({"config": "gone.yaml"}).startswith(f"--config: {place}/gone.yaml cannot be read (No such file")
    assert "Is a directory" in refusal({"config": str(place)})
    (place / "binary").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in refusal({"config": "binary"})
    (place / "big").write_bytes(b"#" * (1 << 20) + b"#")
    assert "larger than 1 MiB" in refusal({"config": "big"})


def test_without_a_cloud_there_is_no_agent(place):
    message = refusal({"robot_kubeconfig": "robot-default"})
    assert message.startswith("--cloud-kubeconfig is required; allowed: ")


WRONG_KUBECONFIGS = {
    "": "has no contexts",
    "- a": "has no contexts",
    "contexts: 7": "has no contexts",
    "contexts: [7, {name: 1, context: {}}, {name: a, context: b}]": "has no contexts",
    "users: [{user: {token: s3cret}}\n": ":2: not YAML",
    "contexts: [{name: a, context: {cluster: c}}]": "has no valid current-context",
    "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]": "no cluster is named 'c'",
    "current-context: a\ncontexts: [{name: a, context: {}}]\nclusters: [{name: c, cluster: {}}]": "no cluster is named",
    "a: 2001-99-99": "not YAML",
    json.dumps(kubeconfig("http://cloud.example.com")): "allowed: https://",
}


@pytest.mark.parametrize("text", WRONG_KUBECONFIGS, ids=range(len(WRONG_KUBECONFIGS)))
@pytest.mark.parametrize("side", ["cloud", "robot"])
def test_a_kubeconfig_that_cannot_work_is_refused_at_start(place, side, text):
    (place / "k").write_text(text)
    message = refusal(flags(place, **{f"{side}_kubeconfig": "k"}))
    assert message.startswith(f"--{side}-kubeconfig: {place}/k")
    assert WRONG_KUBECONFIGS[text] in message
    assert "s3cret" not in message


def test_a_mistake_in_the_file_is_one_also_where_a_flag_hides_it(place):
    assert "listen is" in refusal(flags(place, listen="off", config=file(place, "listen: nonsense")))


def test_the_cloud_is_looked_at_before_the_robot_is_guessed(place):
    assert refusal({"cloud_kubeconfig": "nope"}, root=place).startswith("--cloud-kubeconfig: ")


def test_a_context_of_the_file_is_refused_where_it_stands(place):
    path = file(place, "cloud:\n  context: nine\n")
    assert refusal(flags(place, config=path)).startswith(
        f'{path}:2: cloud.context: {place}/cloud-default has no context "nine"; allowed: four, one, three, two'
    )


def test_both_sides_may_not_be_the_same_cluster(place):
    (place / "link").symlink_to("cloud-default")
    assert "two different clusters" in refusal(flags(place, robot_kubeconfig="link"))
    assert load(flags(place, robot_kubeconfig="link", robot_context="two"), {}).robot_context == "two"


IN_CLUSTER = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def robot_in(place: Path, environ: dict, **more) -> Settings:
    return load({"cloud_kubeconfig": "cloud-default"} | more, environ, root=place)


def pod(place: Path) -> Path:
    account = place / "var/run/secrets/kubernetes.io/serviceaccount"
    account.mkdir(parents=True)
    (account / "token").write_text("t")
    (account / "ca.crt").write_text("c")
    return account


def k3s(place: Path) -> Path:
    path = place / "etc/rancher/k3s/k3s.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(kubeconfig("https://127.0.0.1:6443")))
    return path


def test_in_a_pod_the_robot_is_the_in_cluster_account(place):
    account = pod(place)
    k3s(place)
    settings = robot_in(place, IN_CLUSTER)
    assert settings.robot_kubeconfig is None
    assert settings.files[-2:] == (account / "ca.crt", account / "token")
    assert "needs --robot-kubeconfig" in refusal(
        {"cloud_kubeconfig": "cloud-default", "robot_context": "x"}, IN_CLUSTER, root=place
    )


@pytest.mark.parametrize("environ", [{}, IN_CLUSTER])
def test_outside_a_pod_the_robot_is_k3s(place, environ):
    path = k3s(place)
    assert robot_in(place, environ).robot_kubeconfig == path


def test_variables_of_a_pod_without_its_files_are_not_a_pod(place):
    message = refusal({"cloud_kubeconfig": "cloud-default"}, IN_CLUSTER, root=place)
    assert message.startswith("--robot-kubeconfig is required here")


def test_a_broken_k3s_file_is_named(place):
    k3s(place).write_text("")
    message = refusal({"cloud_kubeconfig": "cloud-default"}, root=place)
    assert message.startswith(f"--robot-kubeconfig (by default): {place}/etc/rancher/k3s/k3s.yaml")


def test_looking_at_an_agent_needs_only_its_state_directory(place):
    path = file(place, "robotname: typo\ncloud: nonsense\nstateDir: here\n")
    assert state_dir({"config": path}, {}) == place / "here"
    assert state_dir({"config": "gone"}, {"STATE_DIRECTORY": "/a"}) == Path("/a")
    assert state_dir({"state_dir": "/b"}, {"STATE_DIRECTORY": "/a"}) == Path("/b")
    assert state_dir({}, {}) == Path("/var/lib/crsyncer")
    with pytest.raises(ConfigError, match=r":1: stateDir has the wrong shape"):
        state_dir({"config": file(place, "stateDir: [a]")}, {})

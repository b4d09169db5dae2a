"""`crsyncer mutate`: policies tried on files, and one line for everything that is wrong with them."""

import hashlib
import json
import os
from pathlib import Path

import pytest
import yaml

from tests.core.sync_policies import MINIMAL, WRONG, edited
from tests.delivery.command_line import crsyncer, in_process

URL = {"path": "/spec/url", "regex": {"pattern": "^http:(.*)", "replacement": "https:$1"}}
ROBOT = {"path": "/spec/robot", "template": "{robot}-{cluster}"}
TWICE = {"path": "/spec/count", "cel": "value * 2"}
UP = {"path": "/status/message", "template": "{name}: {/status/message}"}
ORDER = """\
apiVersion: lab.example.com/v1
kind: Order
metadata: {name: a, namespace: shop}
spec:
  url: http://cloud
  count: 4
status:
  message: done
"""


@pytest.fixture
def tried(tmp_path):
    """Try steps on the order; more arguments go to the command."""

    def run(*arguments: str | Path, down=(), up=(), raw=ORDER, **variables: str):
        policy = edited(MINIMAL, "spec", "mutations", value={"down": [*down], "up": [*up]})
        (tmp_path / "policy.json").write_text(json.dumps(policy))
        (tmp_path / "order.yaml").write_text(raw)
        called = crsyncer if variables.get("PYTHONPATH") else in_process
        return called("mutate", "--policy", "policy.json", "order.yaml", *arguments, cwd=tmp_path, **variables)

    return run


def test_the_change_is_shown_as_a_unified_diff(tried):
    done = tried(down=[URL, TWICE], up=[UP])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "--- order.yaml",
        "+++ order.yaml (mutated)",
        "@@ -4,7 +4,7 @@",
        "   name: a",
        "   namespace: shop",
        " spec:",
        "-  url: http://cloud",
        "-  count: 4",
        "+  url: https://cloud",
        "+  count: 8",
        " status:",
        "   message: done",
    ]


def test_the_object_itself_is_printed_for_kubectl(tried):
    expected = yaml.safe_load(ORDER.replace("http:", "https:"))
    assert (
        json.loads(tried("-o", "json", down=[URL]).stdout) == json.loads(tried("--json", down=[URL]).stdout) == expected
    )
    assert tried("-o", "text", down=[URL]).stdout == tried(down=[URL]).stdout
    assert yaml.safe_load(tried("-o", "yaml", down=[URL]).stdout) == expected


def test_numbers_and_texts_of_JSON_are_read_as_an_API_server_reads_them(tried):
    spec = {"small": 1e-07, "texts": ["größe 😀", "1e3", "12:30", "yes", "2026-01-01"], "large": 2**53 + 1}
    order = {"apiVersion": "lab.example.com/v1", "kind": "Order", "metadata": {"name": "a"}, "spec": spec}
    done = tried("-o", "json", down=[{"path": "/spec/small", "cel": "value * 2.0"}], raw=json.dumps(order, indent="\t"))
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["spec"] == {**spec, "small": 2e-07}


def test_plain_texts_of_YAML_are_read_as_kubectl_reads_them(tried):
    texts = "[12:30, 1:2:3, 2026-01-01, 2026-01-01T10:00:00Z, y, n, 1e, 0o8, =, tRUE]"
    numbers = "[1e3, 1.5e3, 1.0, 017, 0o17, 0x1F, -0b11, 08, 1_000, +.5, 9007199254740993, 1e-7]"
    words = "[yes, no, on, off, True, FALSE, ~]"
    keys = "{yes: 1, 2: 2, 1.5: 3, 12:30: 4}"
    raw = f"{ORDER}others: {{texts: {texts}, numbers: {numbers}, words: {words}, keys: {keys}}}"
    done = tried("--json", down=[{"path": "/spec/sum", "cel": "self.others.numbers[2] + 1"}], raw=raw)
    assert done.stderr == ""
    assert json.dumps(json.loads(done.stdout)["others"]) == json.dumps(
        {
            "texts": texts[1:-1].split(", "),
            "numbers": [1000, 1500, 1, 15, 15, 31, -3, 8, 1000, 0.5, 9007199254740993, 1e-07],
            "words": [True, False, True, False, True, False, None],
            "keys": {"true": 1, "2": 2, "1.5": 3, "12:30": 4},
        }
    )


def test_the_other_direction_changes_the_status(tried):
    done = tried("--direction", "up", "-o", "json", down=[URL], up=[UP])
    assert json.loads(done.stdout) == {**yaml.safe_load(ORDER), "status": {"message": "a: done"}}


def test_placeholders_are_given_by_flags_variables_or_the_configuration(tried, tmp_path):
    (tmp_path / "c.yaml").write_text("robotName: r1\n")
    given = ["--cluster", "kube-system:u-1", "-o", "json"]
    cluster = hashlib.sha256(b"kube-system:u-1").hexdigest()[:16]
    for arguments, variables in (
        (["--robot-name", "r1"], {}),
        ([], {"CRSYNCER_ROBOT_NAME": "r1"}),
        (["--config", "c.yaml"], {}),
    ):
        done = tried(*given, *arguments, down=[ROBOT], **variables)
        assert json.loads(done.stdout)["spec"]["robot"] == f"r1-{cluster}"


def test_that_nothing_changes_is_said(tried):
    done = tried(down=[{"path": "/spec/gone", "remove": True}])
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "crsyncer: note: no step of mutations.down changes this object\n"


def test_a_step_that_fails_is_one_line_and_exit_code_1(tried):
    done = tried(down=[URL, {"path": "/spec/x", "cel": "self.spec.gone"}])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == 'crsyncer: spec.mutations.down[1], /spec/x: Key not found in map : "gone"\n'
    done = tried(down=[ROBOT])
    assert done.returncode == 1
    assert "{robot} is not known without the robot's name" in done.stderr


@pytest.mark.parametrize("wrong", WRONG[::12], ids=str)
def test_a_wrong_policy_is_one_line_and_exit_code_2(tmp_path, wrong):
    (tmp_path / "policy.json").write_text(json.dumps(wrong.policy))
    (tmp_path / "order.yaml").write_text(ORDER)
    done = in_process("mutate", "--policy", tmp_path / "policy.json", tmp_path / "order.yaml")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"crsyncer: {tmp_path}/policy.json: ")
    assert wrong.said in done.stderr


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("a: [", "order.yaml:2: not YAML"),
        ("", "order.yaml has 0 objects; allowed: one"),
        (f"{ORDER}---\n{ORDER}", "order.yaml has 2 objects; allowed: one"),
        ("- 1", "order.yaml: the whole is a list of 1; allowed: an object"),
        ("kind: Order", "order.yaml: apiVersion is missing"),
        (ORDER.replace("name: a,", ""), "order.yaml: metadata.name is missing"),
        (ORDER.replace("metadata: {", "metadata: [").replace("shop}", "shop]"), "order.yaml: metadata is a list of 2"),
        (
            ORDER.replace("lab.", "shop."),
            'order.yaml: apiVersion is "shop.example.com/v1"; allowed: the policy\'s group',
        ),
        (
            ORDER.replace("count: 4", "count: !!timestamp 2026-01-01"),
            "order.yaml: the value at /spec/count is a date, which JSON does not have",
        ),
        (ORDER.replace("count: 4", "count: .nan"), "/spec/count is no finite number"),
        (ORDER.replace("count: 4", "count: &x [*x]"), "order.yaml: an alias refers to what it is in"),
    ],
)
def test_a_wrong_object_is_one_line_and_exit_code_2(tried, raw, said):
    done = tried(raw=raw)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr


def test_C4_5_without_the_extra_its_steps_are_refused_in_a_line_and_all_others_work(tried, tmp_path):
    missing = tmp_path / "missing"
    missing.mkdir()
    for name in ("re2", "cel_expr_python"):
        (missing / f"{name}.py").write_text("raise ImportError\n")
    path = os.pathsep.join(filter(None, (str(missing), str(Path.cwd()), os.environ.get("PYTHONPATH"))))
    for step, field, package in ((URL, "regex.pattern", "google-re2"), (TWICE, "cel", "cel-expr-python")):
        done = tried(down=[ROBOT, step], PYTHONPATH=path)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            f"crsyncer: policy.json: spec.mutations.down[1].{field}: needs {package}, which is not installed"
            ' (install crsyncer with its extra: pip install ".[expressions]")\n'
        )
    done = tried(down=[{"path": "/spec/count", "set": {"value": 5}}], up=[UP], PYTHONPATH=path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "+  count: 5" in done.stdout

"""The setting of `fleet run` that names the API servers beside the root (section 12)."""

from pathlib import Path

import pytest

from tests.delivery.command_line import in_process as crsyncer

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: "https://{host}.example.com"}}}}]
users: [{{name: u, user: {{token: t}}}}]
"""


@pytest.mark.parametrize(
    ("shards", "says"),
    [
        (["root=DIR/b"], "is not NAME=FILE: a DNS label that is not 'root', and a kubeconfig"),
        (["b=DIR/b", "b=DIR/c"], "shard b is given twice"),
        (["b=DIR/missing"], "--shard: b: "),
        (["b=DIR/b", "c=DIR/b"], "--shard: c and b are the same server, https://b.example.com; allowed: each once"),
        (["b=DIR/a"], "--shard: b and root are the same server, https://a.example.com; allowed: each once"),
    ],
)
def test_section_12_a_bad_shard_is_one_line_and_exit_code_2(tmp_path: Path, shards, says):
    for host in "abc":
        (tmp_path / host).write_text(KUBECONFIG.format(host=host))
    flags = [flag for shard in shards for flag in ("--shard", shard.replace("DIR", str(tmp_path)))]
    done = crsyncer("fleet", "run", "--cloud-kubeconfig", str(tmp_path / "a"), *flags)
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [("status",), ("explain", "p", "--robot", "r"), ("plan",), ("render", "p", "--robot", "r"), ("release", "x"),
     ("doctor",)],
    ids=lambda words: words[0],
)  # fmt: skip
def test_section_12_each_command_that_reads_the_cloud_takes_shards_as_fleet_run_does(tmp_path: Path, words):
    (tmp_path / "a").write_text(KUBECONFIG.format(host="a"))
    (tmp_path / "config.yaml").write_text(
        f"cloud: {{kubeconfig: {tmp_path / 'a'}}}\nshards: {{b: {tmp_path / 'none'}}}\n"
    )
    by_file = crsyncer("fleet", *words, "--config", tmp_path / "config.yaml")
    shards = f"b={tmp_path / 'none'}"
    by_variable = crsyncer("fleet", *words, "--cloud-kubeconfig", tmp_path / "a", CRSYNCER_SHARDS=shards)
    for done in (by_file, by_variable):
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
        assert "b: " in done.stderr

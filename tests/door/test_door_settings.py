"""What `crsyncer door` refuses: one line each, which names the setting and what is allowed, and nothing is touched."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from crsyncer.adapters.config import DOOR_OPTIONS, load_door
from crsyncer.cli.main import main
from crsyncer.errors import ConfigError
from tests.adapters.kube_server import make_certificates
from tests.door.programs import haproxy

Told = Callable[..., tuple[int, str, str]]


def kubeconfig(path: Path, server: str = "https://127.0.0.1:9", **cluster: object) -> Path:
    content = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "s3cret-t0ken"}}],
    }
    path.write_text(json.dumps(content))
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with kubeconfigs, certificates and configuration files, good and bad."""
    home = tmp_path_factory.mktemp("settings")
    kubeconfig(home / "root")
    kubeconfig(home / "b", "https://127.0.0.2:9")
    kubeconfig(home / "case", "https://Shard.Example.com")
    kubeconfig(home / "port", "https://shard.example.com:443/")
    kubeconfig(home / "http", "http://127.0.0.3:9")
    kubeconfig(home / "path", "https://127.0.0.4:9/clusters/x")
    kubeconfig(home / "proxied", "https://192.0.2.5:9", **{"proxy-url": "http://127.0.0.6:9"})
    kubeconfig(home / "insecure", "https://127.0.0.7:9", **{"insecure-skip-tls-verify": True})
    (home / "garbage").write_text("garbage")
    issuer = make_certificates(home)
    pairs = {
        "good": issuer.issue("good"),
        "expired": issuer.issue("expired", days=-1),
        "future": issuer.issue_for_2040("future"),
    }
    for name, (certificate, key) in pairs.items():
        (home / f"{name}.pem").write_text(certificate.read_text() + key.read_text())
    (home / "torn.pem").write_text(pairs["good"][0].read_text() + pairs["expired"][1].read_text())
    (home / "bare.pem").write_text(pairs["good"][0].read_text())
    (home / "unknown.yaml").write_text("door: {dir: /x}\n")
    (home / "list.yaml").write_text("shards: [b]\n")
    (home / "twice.yaml").write_text("shards: {b: b, b: b}\n")
    (home / "nested.yaml").write_text("shards: {b: {c: d}}\n")
    (home / "exporter.yaml").write_text("door: {exporter: a b:1}\n")
    (home / "names").write_text("r1\n\nr2\n")
    (home / "empty").write_text("\n")
    (home / "bind.yaml").write_text("door: {bind: 8443}\n")
    return home


FLEET_PAGE = (Path(__file__).parents[2] / "FLEET.md").read_text()
ROOT = ("--cloud-kubeconfig", "root")
GOOD = (*ROOT, "--certificate", "good.pem", "--directory", "door")
BAD = {
    "no kubeconfig": (("--certificate", "good.pem"), "--cloud-kubeconfig is required"),
    "a kubeconfig that is missing": (("--cloud-kubeconfig", "x"), "--cloud-kubeconfig"),
    "a kubeconfig that is none": (("--cloud-kubeconfig", "garbage"), "--cloud-kubeconfig"),
    "no certificate": (ROOT, "--certificate is required"),
    "a certificate that is missing": ((*ROOT, "--certificate", "x"), "--certificate"),
    "a certificate that is none": ((*ROOT, "--certificate", "garbage"), "is no PEM certificate with its key"),
    "a certificate without its key": ((*ROOT, "--certificate", "bare.pem"), "is no PEM certificate with its key"),
    "a certificate with another key": ((*ROOT, "--certificate", "torn.pem"), "has a key that is not its certificate's"),
    "a certificate that has expired": ((*ROOT, "--certificate", "expired.pem"), "expired at"),
    "a certificate that is not valid yet": ((*ROOT, "--certificate", "future.pem"), "is not valid before 2040"),
    "a shard without a file": ((*GOOD, "--shard", "b"), "NAME=FILE"),
    "a shard called root": ((*GOOD, "--shard", "root=b"), "NAME=FILE"),
    "a shard whose name is none": ((*GOOD, "--shard", "B_=b"), "NAME=FILE"),
    "a shard whose name is too long": ((*GOOD, "--shard", f"{'a' * 64}=b"), "NAME=FILE"),
    "a shard without a name": ((*GOOD, "--shard", "=b"), "NAME=FILE"),
    "a shard given twice": ((*GOOD, "--shard", "b=b", "--shard", "b=b"), "given twice"),
    "a shard whose file is missing": ((*GOOD, "--shard", "b=x"), "--shard: b: "),
    "two shards of one server": ((*GOOD, "--shard", "b=root"), "b and root are the same server"),
    "one server in two spellings": ((*GOOD, "--shard", "c=case", "--shard", "d=port"), "d and c are the same server"),
    "a shard by http": ((*GOOD, "--shard", "b=http"), "not an https:// URL"),
    "a shard that is not verified": ((*GOOD, "--shard", "b=insecure"), "insecure-skip-tls-verify"),
    "a shard whose server has a path": ((*GOOD, "--shard", "b=path"), "has a path"),
    "a shard behind a proxy": ((*GOOD, "--shard", "b=proxied"), "behind a proxy"),
    "a directory with a blank": ((*GOOD, "--directory", "a b"), "HAProxy's configuration names it"),
    "a directory that is a file": ((*GOOD, "--directory", "garbage"), "a directory"),
    "no port": ((*GOOD, "--bind", "0.0.0.0"), "HOST:PORT"),
    "port 0": ((*GOOD, "--bind", ":0"), "HOST:PORT"),
    "a port above 65535": ((*GOOD, "--bind", ":65536"), "HOST:PORT"),
    "a host that is none": ((*GOOD, "--bind", "a b:1"), "HOST:PORT"),
    "an address without brackets": ((*GOOD, "--bind", "::1:1"), "192.0.2.1:8443 or [::]:8443"),
    "bind off": ((*GOOD, "--bind", "off"), "HOST:PORT"),
    "an exporter that is no address": ((*GOOD, "--exporter", "8404"), "HOST:PORT"),
    "listening nowhere": ((*GOOD, "--listen", "x"), "HOST:PORT"),
    "a kind without a group": ((*GOOD, "--robots", "robots"), "RESOURCE.GROUP"),
    "a namespace that is none": ((*GOOD, "--robots-namespace", "A"), "the name of a namespace"),
    "a level of logs that is none": ((*GOOD, "--log-level", "loud"), "--log-level"),
    "a time that is too short": ((*GOOD, "--watch-timeout", "5"), "from 30 to 600"),
    "a key that is none": ((*GOOD, "--config", "unknown.yaml"), "door.dir is not a known key"),
    "shards as a list": ((*GOOD, "--config", "list.yaml"), "allowed: NAME: FILE lines"),
    "a shard twice in the file": ((*GOOD, "--config", "twice.yaml"), "given twice"),
    "a shard with a mapping": ((*GOOD, "--config", "nested.yaml"), "allowed: NAME: FILE lines"),
    "an exporter with a blank in the file": ((*GOOD, "--config", "exporter.yaml"), "HOST:PORT"),
    "a port alone in the file": ((*GOOD, "--config", "bind.yaml"), "HOST:PORT"),
}


@pytest.fixture
def door(made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Told:
    """Runs a command of the door in this process, in the directory: exit code, output and errors."""
    monkeypatch.chdir(made)
    monkeypatch.setenv("PATH", f"{haproxy().parent}:{os.environ['PATH']}")

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["door", *arguments])
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize("name", BAD)
def test_a_bad_setting_is_one_line_and_exit_code_2(name: str, made: Path, door: Told):
    arguments, expected = BAD[name]
    before = sorted(made.iterdir())
    code, output, errors = door("config", *arguments)
    assert (code, output) == (2, ""), errors
    [line] = errors.splitlines()
    assert line.startswith("crsyncer: ")
    assert expected in line
    assert "s3cret" not in line
    assert not ("--bind" in arguments and "or off" in line), "robots have to come in somewhere"
    assert sorted(made.iterdir()) == before


@pytest.mark.parametrize("image", ["", "a b"])
def test_manifests_with_a_bad_image_are_one_line_and_exit_code_2(image: str, door: Told):
    code, output, errors = door("manifests", "--image", image)
    assert (code, output) == (2, "")
    assert errors.startswith(f'crsyncer: --image is "{image}"; allowed: the name of an image')


SPLIT = ("root", "b", *ROOT, "--shard", "b=b")
BAD_SPLITS = {
    "no names": (SPLIT, "Missing option '--names'"),
    "names that are missing": ((*SPLIT, "--names", "x"), "cannot be read"),
    "the flag of missing names": ((*SPLIT, "--names", "x"), "crsyncer: --names: /"),
    "names that are none": ((*SPLIT, "--names", "list.yaml"), "is no robot's name"),
    "no name at all": ((*SPLIT, "--names", "empty"), "is empty"),
    "no new shard": (("root", *ROOT), "Missing argument 'NEW'"),
    "an unknown shard": (("root", "c", *SPLIT[2:], "--names", "names"), "shard c is not known; allowed: root, b"),
    "one shard": (("b", "b", *SPLIT[2:], "--names", "names"), "SHARD and NEW are both b"),
    "a step that is none": ((*SPLIT, "--names", "names", "--step", "6"), "1<=x<=5"),
    "a door that is none": ((*SPLIT, "--names", "names", "--door", "x"), "HOST:PORT"),
    "no door": ((*SPLIT, "--names", "names", "--listen", "off"), "--door is required"),
}


@pytest.mark.parametrize("name", BAD_SPLITS)
def test_a_split_with_a_bad_argument_is_one_line_and_exit_code_2(name: str, door: Told):
    arguments, expected = BAD_SPLITS[name]
    code, output, errors = door("split", *arguments)
    assert (code, output) == (2, ""), errors
    [line] = errors.splitlines()
    assert line.startswith("crsyncer: ")
    assert expected in line


def test_the_split_on_the_page_is_one_that_the_command_takes(made: Path, tmp_path: Path, door: Told):
    [command] = [
        line for line in FLEET_PAGE.replace("\\\n", "").splitlines() if line.startswith("crsyncer door split ")
    ]
    for name, number in {"root.yaml": 1, "a.yaml": 2, "b.yaml": 3}.items():
        kubeconfig(tmp_path / name, f"https://127.0.0.{number}:9")
    (tmp_path / "robots.txt").write_text("r1\n")
    words = [str(tmp_path / word) if word.endswith((".txt", "root.yaml")) else word for word in command.split()[3:]]
    words = [f"{word[:2]}{tmp_path / word[2:]}" if word[1:2] == "=" else word for word in words]
    code, output, errors = door("split", *words)
    assert (code, output) == (1, ""), errors
    assert errors.startswith("crsyncer: shard root: "), "it is asked first, and there is none"


PROGRAMS = {
    "HAProxy 2.2 is too old": "HA-Proxy version 2.2.9-2+deb11u6 2023/08/14\n+PCRE2",
    "HAProxy 2.5 is too old": "HAProxy version 2.5.0 2021/11/23\n+PCRE2",
    "HAProxy 2.8 is built without PCRE": "HAProxy version 2.8.1 2023\n-PCRE -PCRE2",
    "haproxy in PATH is not HAProxy": "hello",
}


@pytest.mark.parametrize("expected", PROGRAMS)
def test_a_haproxy_that_will_not_do_is_one_line_and_exit_code_1(
    expected: str, made: Path, tmp_path: Path, door: Told, monkeypatch: pytest.MonkeyPatch
):
    program = tmp_path / "haproxy"
    program.write_text(f"#!/bin/sh\ncat <<'E'\n{PROGRAMS[expected]}\nE\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    code, output, errors = door("config", *GOOD)
    line, hint = errors.splitlines()
    assert (code, output) == (1, "")
    assert line.startswith(f"crsyncer: {expected}")
    assert hint.startswith("hint: install ")
    assert not (made / "door").exists()


def test_unless_all_shards_answer_nothing_is_written_and_the_exit_code_is_1(made: Path, door: Told):
    code, output, errors = door("config", *GOOD, "--shard", "b=b")
    assert (code, output) == (1, "")
    assert errors.startswith("crsyncer: shard root gives no keys: ")
    assert not (made / "door").exists()


def load(made: Path, text: str = "", **given: object):
    (made / "door.yaml").write_text(text)
    flags = {"config": made / "door.yaml", "cloud_kubeconfig": made / "root", "certificate": made / "good.pem"}
    return load_door({**flags, **given}, {}, making=True)


def test_every_setting_has_a_default_and_the_file_may_have_the_controllers_too(made: Path):
    found = load(made, "controllerNamespace: x\nlisten: 'off'\n")
    assert (found.listen, found.bind, found.exporter, found.shards) == (None, ("*", 8443), None, ())
    assert (str(found.directory), str(found.socket)) == ("/etc/crsyncer-door", "/run/haproxy-master.sock")
    assert load(made).listen == ("127.0.0.1", 9466)


def test_the_file_has_shards_as_a_mapping_beside_it(made: Path):
    found = load(made, "shards: {b: b}\ndoor: {directory: d, socket: s, bind: '[::]:1', exporter: ':2'}\n")
    assert found.shards == (("b", made / "b"),)
    assert (found.directory, found.socket, found.bind) == (made / "d", made / "s", ("::", 1))
    assert found.exporter == ("*", 2)
    assert load(made, "door: {exporter: off}\n").exporter is None
    assert [name for name, _ in found.logins] == ["root", "b"]
    assert {made / "root", made / "b", made / "good.pem", made / "door.yaml"} == set(found.files)


def test_the_variable_of_shards_is_separated_by_blanks(made: Path, door: Told, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CRSYNCER_SHARDS", f"b={made / 'b'} c={made / 'x'}")
    code, _, errors = door("assign", *ROOT)
    assert code == 2
    assert errors.startswith("crsyncer: --shard: c: ")


def test_the_help_names_each_flag_variable_and_key(door: Told):
    text = " ".join(door("run", "--help")[1].split())
    for key, option in DOOR_OPTIONS.items():
        for name in (option.opts[0], *(option.envvar or ()), f"[key: {key}]"):
            assert name in text, name
    assert {"CRSYNCER_DOOR_DIRECTORY", "CRSYNCER_DOOR_BIND", "CRSYNCER_SHARDS"} <= set(text.replace(";", " ").split())


def test_without_a_certificate_the_configuration_is_looked_at_and_not_made(made: Path):
    assert load_door({"cloud_kubeconfig": made / "root"}, {}).certificate is None
    with pytest.raises(ConfigError, match="--certificate is required"):
        load_door({"cloud_kubeconfig": made / "root"}, {}, making=True)

"""The Debian package's parts fit together. What it does on a machine: test_packages_booted.py, in `make packages`."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from crsyncer.adapters.config import OPTIONS, load
from tests.delivery.command_line import environment, write_kubeconfig
from tests.delivery.followed import ROOT

SCRIPTS = sorted(path for path in (ROOT / "packaging").rglob("*") if path.is_file() and path.stat().st_mode & 0o100)
_MOST_EXPOSURE = {"crsyncer": 15, "crsyncer-door": 15, "crsyncer-door-haproxy": 16}
"""By unit, tenths of what `systemd-analyze security` calls exposure. HAProxy may open port 443."""


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze on this machine")
def test_the_units_are_well_formed_and_their_programs_are_confined(tmp_path):
    units = [*(ROOT / "systemd").glob("crsyncer*.*"), *(ROOT / "systemd/door").glob("crsyncer*.*")]
    for unit in units:
        # verify wants programs that are there
        text = re.sub("^(Exec.*=-?)(crsyncer|/usr/sbin/haproxy)", r"\1true", unit.read_text(), flags=re.MULTILINE)
        (tmp_path / unit.name).write_text(text)
    security = ["systemd-analyze", "security", "--offline=yes", "--no-pager"]
    for command in (
        ["systemd-analyze", "verify", *sorted(tmp_path.iterdir())],
        *([*security, f"--threshold={most}", tmp_path / f"{name}.service"] for name, most in _MOST_EXPOSURE.items()),
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout[-300:]


def test_the_configuration_of_the_package_waits_to_be_filled_in(tmp_path):
    form = (ROOT / "systemd/config.yaml").read_text()
    kubeconfig = write_kubeconfig(tmp_path / "k")
    flags = {"cloud_kubeconfig": kubeconfig, "robot_kubeconfig": kubeconfig, "robot_context": "robot"}
    settings = load({"config": ROOT / "systemd/config.yaml", **flags}, {})
    assert (settings.robot_name, settings.namespaces) == ("", ())
    filled = tmp_path / "config.yaml"
    filled.write_text(form.replace("robotName:", "robotName: r1").replace("namespaces:", "namespaces: [robot-r1]"))
    settings = load({"config": filled, **flags}, {})
    assert (settings.robot_name, settings.namespaces) == ("r1", ("robot-r1",))


def test_the_package_and_the_pages_install_what_policies_need():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = f"[{','.join(sorted(project['optional-dependencies']))}]"
    assert f'"crsyncer{extras} @ file://$wheel' in (ROOT / "packaging/deb.sh").read_text()
    for page in ("README.md", "systemd/README.md"):
        text = (ROOT / page).read_text()
        assert re.findall(r"\bpip install (\S+)", text.replace("`", " ")) == [f'".{extras}"'], page


def test_the_wheel_brings_every_page_that_a_page_leads_to(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        schemas = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("crsyncer/cli/fleet/schemas/*.yaml")}
        assert {"crsyncer/cli/syncpolicy.yaml", "crsyncer/cli/apis.yaml", *schemas} <= {*archive.namelist()}
        pages = zipfile.Path(archive, f"{'-'.join(wheel.name.split('-')[:2])}.data/data/share/doc/crsyncer/")
        files = {name.removeprefix(pages.at) for name in archive.namelist() if name.startswith(pages.at)}
        texts = {name: (pages / name).read_text() for name in files if name.endswith(".md")}
    assert {"README.md", "OPERATING.md", "MOVING.md", "cloud/README.md"} <= texts.keys()
    for name, text in texts.items():
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            target = os.path.normpath(os.path.join(os.path.dirname(name), link))
            assert any(file == target or file.startswith(f"{target}/") for file in files), (name, link)


def test_the_manual_page_and_the_completion_know_every_command(tmp_path):
    subprocess.run([sys.executable, ROOT / "packaging/manual.py", tmp_path, "1700000000"], check=True, timeout=120)
    page = (tmp_path / "usr/share/man/man1/crsyncer.1").read_text()
    assert page.startswith('.TH CRSYNCER 1 "2023-11-14"')
    for command in ("status", "holds release", "pending drop", "sandbox env"):
        assert f"\n.SS crsyncer {command} " in page
    for name, option in OPTIONS.items():
        assert option.opts[0].replace("-", "\\-") in page, name
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-wall", "-z"], input=page, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
    completion = tmp_path / "usr/share/bash-completion/completions/crsyncer"
    words = {"COMP_WORDS": "crsyncer sta", "COMP_CWORD": "1"}
    path = f"PATH={Path(sys.executable).parent}:$PATH"
    shell = f"source {completion}; complete -p crsyncer; {path} _CRSYNCER_COMPLETE=bash_complete crsyncer"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, env=environment(**words), timeout=60)
    assert (done.stdout.splitlines()[-1], done.stderr) == ("plain,status", "")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_well_formed(script: Path):
    text = script.read_text()
    if text.startswith("#!/bin/sh\n"):
        assert subprocess.run(["sh", "-n", script], capture_output=True, text=True, timeout=60).stderr == ""
    else:
        compile(text, script, "exec")

"""What commands find of the package's unit, on machines that are directories here."""

from pathlib import Path

import pytest

from crsyncer.adapters.config import DOOR_UNIT, UNIT, load_haproxy, with_unit
from crsyncer.errors import ConfigError

SHIPPED_UNITS = Path(__file__).parents[2] / "systemd"
SHIPPED = (SHIPPED_UNITS / UNIT).read_text()
COPIES = f"run/credentials/{UNIT}"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine with the package's unit."""
    write(tmp_path, f"usr/lib/systemd/system/{UNIT}", SHIPPED)
    return tmp_path


def write(root: Path, path: str, text: str = "") -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def drop_in(root: Path, name: str, text: str, *, folder: str = "etc/systemd/system", unit: str = UNIT) -> None:
    write(root, f"{folder}/{unit}.d/{name}.conf", f"[Service]\n{text}\n")


def test_the_shipped_unit_is_found_and_its_credentials_where_they_are_copied_from(machine: Path) -> None:
    assert with_unit({"robot_name": None, "config": None}, root=machine) == {
        "robot_name": None,
        "config": Path("/etc/crsyncer/config.yaml"),
        "cloud_kubeconfig": Path("/etc/crsyncer/cloud.kubeconfig"),
        "robot_kubeconfig": Path("/etc/rancher/k3s/k3s.yaml"),
        "boot_id_file": Path("/proc/sys/kernel/random/boot_id"),
        "state_dir": Path("/var/lib/crsyncer"),
    }


def test_while_the_service_runs_its_own_copies_are_used(machine: Path) -> None:
    write(machine, f"{COPIES}/cloud.kubeconfig")
    found = with_unit({}, root=machine)
    assert found["cloud_kubeconfig"] == Path(f"/{COPIES}/cloud.kubeconfig")
    assert found["robot_kubeconfig"] == Path("/etc/rancher/k3s/k3s.yaml")


def test_without_the_package_and_for_another_agent_there_is_only_what_is_given(machine: Path, tmp_path: Path) -> None:
    given = {"state_dir": None, "robot_name": "r1"}
    assert with_unit(given, root=tmp_path / "nowhere") is given
    for other in ({"state_dir": Path("/s")}, {"config": Path("/c")}):
        assert with_unit(other, root=machine) == other


def test_flags_and_variables_come_before_the_unit(machine: Path) -> None:
    drop_in(machine, "name", "Environment=CRSYNCER_ROBOT_NAME=r2")
    given = {"robot_name": "r1", "cloud_kubeconfig": Path("/mine")}
    found = with_unit(given, root=machine)
    assert (found["robot_name"], found["cloud_kubeconfig"]) == ("r1", Path("/mine"))


def test_drop_ins_count_in_the_order_of_their_names_and_an_empty_value_begins_anew(machine: Path) -> None:
    drop_in(machine, "20-names", 'Environment="CRSYNCER_ROBOT_NAME=r2" \\\n  CRSYNCER_NAMESPACES=a,b')
    drop_in(machine, "10-names", "# CRSYNCER_ROBOT_NAME\nEnvironment=CRSYNCER_ROBOT_NAME=r1")
    drop_in(machine, "30-state", "StateDirectory=robot/crsyncer other\nLoadCredential=cloud.kubeconfig:/srv/cloud")
    drop_in(machine, "30-state", "StateDirectory=ignored", folder="usr/lib/systemd/system")
    found = with_unit({"namespaces": ()}, root=machine)
    assert (found["robot_name"], found["namespaces"]) == ("r2", ("a", "b"))
    assert found["state_dir"] == Path("/var/lib/robot/crsyncer")
    assert found["cloud_kubeconfig"] == Path("/srv/cloud")
    drop_in(machine, "40-reset", "Environment=\nEnvironment=CRSYNCER_CONFIG=/srv/%p.yaml\nLoadCredential=")
    found = with_unit({}, root=machine)
    assert found["config"] == Path("/srv/crsyncer.yaml")
    assert "robot_name" not in found
    assert "cloud_kubeconfig" not in found


def test_files_with_variables_are_read_and_may_be_missing(machine: Path) -> None:
    write(machine, "etc/default/crsyncer", "# the robot\nCRSYNCER_ROBOT_NAME='r 1'\nCRSYNCER_TRUST=api\nnonsense\n")
    write(machine, "etc/default/name", "CRSYNCER_ROBOT_NAME=r3\n")
    drop_in(machine, "f", "EnvironmentFile=-/etc/default/crsyncer\nEnvironmentFile=/etc/default/name")
    drop_in(machine, "g", "EnvironmentFile=-/etc/default/none")
    found = with_unit({"trust": ()}, root=machine)
    assert (found["robot_name"], found["trust"]) == ("r3", ("api",))


def test_a_unit_of_the_machine_replaces_that_of_the_package(machine: Path) -> None:
    write(machine, f"etc/systemd/system/{UNIT}", "[Unit]\nEnvironment=x\n[Service]\nEnvironment=CRSYNCER_CONFIG=/a\n")
    assert with_unit({}, root=machine) == {"config": Path("/a")}


def test_a_value_that_is_not_allowed_names_unit_and_variable(machine: Path) -> None:
    drop_in(machine, "wrong", "Environment=CRSYNCER_ROBOT_NAME=r/1")
    with pytest.raises(ConfigError, match=r"^crsyncer\.service: CRSYNCER_ROBOT_NAME is not allowed: 'r/1'"):
        with_unit({}, root=machine)


def test_commands_of_the_door_find_what_its_own_unit_is_configured_by(tmp_path: Path) -> None:
    write(tmp_path, f"usr/lib/systemd/system/{DOOR_UNIT}", (SHIPPED_UNITS / f"door/{DOOR_UNIT}").read_text())
    write(tmp_path, f"usr/lib/systemd/system/{UNIT}", SHIPPED)
    config = tmp_path / "config.yaml"
    config.write_text("{}")
    drop_in(tmp_path, "config", f"Environment=CRSYNCER_CONFIG={config}", unit=DOOR_UNIT)
    places = (Path("/var/lib/crsyncer-door"), Path("/run/crsyncer-door/master.sock"))
    assert load_haproxy({"directory": None}, root=tmp_path) == places
    other = (Path("/d"), Path("/run/haproxy-master.sock"))
    assert load_haproxy({"directory": Path("/d")}, root=tmp_path) == other


def test_the_two_units_of_the_door_agree_on_its_places() -> None:
    units = [(SHIPPED_UNITS / f"door/{name}").read_text() for name in (DOOR_UNIT, "crsyncer-door-haproxy.service")]
    places = [{line for line in text.splitlines() if "CRSYNCER_DOOR_" in line} for text in units]
    assert places[0] == places[1]
    assert "-S /run/crsyncer-door/master.sock -f /var/lib/crsyncer-door/haproxy.cfg" in units[1]

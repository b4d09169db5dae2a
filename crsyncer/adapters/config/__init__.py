"""The configuration: what an operator may set, and how it is read.
Nothing here talks to a server, and nothing imports heavy packages: `--help` is built from this.
"""

from crsyncer.adapters.config.door_options import (
    DOOR_OPTIONS,
    DOOR_UNIT,
    DOOR_VIEW_OPTIONS,
    HAPROXY_OPTIONS,
    DoorSettings,
    load_door,
    load_haproxy,
)
from crsyncer.adapters.config.fleet_options import FLEET_OPTIONS, FLEET_RUN_OPTIONS, FleetSettings, load_fleet
from crsyncer.adapters.config.load import Settings, load, read_config, state_dir
from crsyncer.adapters.config.options import CONFIG, OPTIONS, a_directory, a_path
from crsyncer.adapters.config.unit import UNIT, with_unit

__all__ = [
    "CONFIG",
    "DOOR_OPTIONS",
    "DOOR_UNIT",
    "DOOR_VIEW_OPTIONS",
    "FLEET_OPTIONS",
    "FLEET_RUN_OPTIONS",
    "HAPROXY_OPTIONS",
    "OPTIONS",
    "UNIT",
    "DoorSettings",
    "FleetSettings",
    "Settings",
    "a_directory",
    "a_path",
    "load",
    "load_door",
    "load_fleet",
    "load_haproxy",
    "read_config",
    "state_dir",
    "with_unit",
]

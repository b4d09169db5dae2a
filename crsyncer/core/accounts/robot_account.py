"""What a robot and its accounts in the cloud are called."""

import re

from crsyncer.core.content.annotations import OURS, ROBOT_LABEL
from crsyncer.core.content.object_content import ROBOT
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Json
from crsyncer.core.reports.text import plain
from crsyncer.errors import ConfigError

ACCOUNT = "crsyncer"
"""Profile `namespace`: the robot's account in its namespace."""
NAME = "[a-z0-9]([-a-z0-9]{0,55}[a-z0-9])?"
"""A robot's name: with `robot-` before it, it is still a DNS-1123 label."""
NAMESPACE_LABEL = OURS + "robot-name"
"""The label of a robot's namespace; its value is the robot's name."""
ROBOTS = "crsyncer-robots"
"""Profile `shared`: the namespace of the robots' accounts, which brings the group of all of them."""
ENROLL = "crsyncer-enroll"
"""The account that may only make tokens for the other account; in profile `shared` the namespace of these."""
TOKEN_SECONDS = 3600
"""The longest life of a token that an account of a robot makes."""


def is_robot_name(name: str) -> bool:
    """Whether a robot of a fleet may be called so: a DNS label of at most 57 characters."""
    return re.fullmatch(NAME, name) is not None


def robot_namespace(robot: str) -> str:
    """The namespace of a robot in the cloud."""
    return f"robot-{robot}"


def own_marks(robot: str) -> dict[str, dict[str, str]]:
    """The label and the signature of a robot's own objects in the cloud, by the field of their metadata."""
    return {"labels": {ROBOT_LABEL: robot}, "annotations": {ROBOT: robot}}


def signed(metadata: Json, robot: str) -> Json:
    """The metadata of an object of the robot's own as they are written, with its marks."""
    kept = {name: value for name, value in metadata.items() if name != "managedFields"}
    return kept | {name: (kept.get(name) or {}) | marks for name, marks in own_marks(robot).items()}


def lacks_status(policy: KindPolicy) -> bool:
    """Whether a served version has no status subresource, so that status is written with the whole object (S4.6)."""
    return not all(version.status for version in policy.versions if version.served)


def check_robot(name: str) -> str:
    """A robot's name that can be part of a namespace's; ConfigError where it cannot."""
    return _check("--robot", name, NAME, 57)


def check_namespace(name: str) -> str:
    """A namespace's name; ConfigError where none can have it."""
    return _check("--namespace", name, "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", 63)


def _check(flag: str, name: str, allowed: str, most: int) -> str:
    if not re.fullmatch(allowed, name):
        words = f'at most {most} lower-case letters, digits and "-", with a letter or digit at each end'
        raise ConfigError(f'{flag} is "{plain(name[:80])}"; allowed: {words}')
    return name

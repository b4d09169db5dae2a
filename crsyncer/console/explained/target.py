"""Which kind and which object an operator means, in the spellings that kubectl takes."""

import re
from collections.abc import Iterable, Mapping, Sequence

from crsyncer.core.model import Key
from crsyncer.core.reports.text import did_you_mean
from crsyncer.errors import SyncError


def split_target(resource: str, name: str, namespace: str) -> tuple[str, str]:
    """RESOURCE and [NAMESPACE/]NAME from `RESOURCE NAME` or `RESOURCE/NAME`; `namespace` is that of -n, if any.

    Raises SyncError where the name is given twice, or the namespace is and differs.
    """
    if name and "/" in resource:
        raise SyncError(f"{resource} and {name} are two names", hint="give RESOURCE NAME or RESOURCE/NAME")
    if not name:
        resource, _, name = resource.partition("/")
    given, slash, bare = name.rpartition("/")
    if namespace and slash and given != namespace:
        raise SyncError(f"{name} is not in the namespace {namespace}", hint="give the namespace once")
    return resource, f"{namespace}/{bare}" if namespace and bare else name


_VERSION = re.compile(r"[.]v[0-9]+((alpha|beta)[0-9]+)?[.]")
"""Between the name and the group, which kubectl takes as well."""


def find_resource(text: str, kinds: Mapping[str, Sequence[str]]) -> str:
    """The full name of the kind that `text` means: itself, or one of its `aliases`, with or without version and group.

    `kinds` has the aliases of each kind: plural, singular, kind and short names, in any case. A text that no kind
    has is returned as it is. Raises SyncError where several kinds have it.
    """
    if text in kinds:
        return text
    wanted = _VERSION.sub(".", text.casefold(), count=1)
    found = []
    for resource, aliases in kinds.items():
        group = resource.partition(".")[2]
        spellings = {alias.casefold() for alias in (resource.partition(".")[0], *aliases)}
        if wanted in spellings or any(wanted == f"{spelling}.{group}" for spelling in spellings):
            found.append(resource)
    if len(found) > 1:
        raise SyncError(f"{text} may be {' or '.join(sorted(found))}", hint="give the whole name")
    return found[0] if found else text


def synced_resource(text: str, kinds: Mapping[str, Sequence[str]]) -> str:
    """As `find_resource`, but raises SyncError also where no kind has the text."""
    found = find_resource(text, kinds)
    if found not in kinds and "/" in text:
        raise SyncError(
            f"{text} is an object, and this command takes a kind", hint=f"crsyncer explain {text} looks at one object"
        )
    if not kinds:  # maybe the robot has not answered yet
        raise SyncError(f"{text} is not synced: no kind is at the moment", hint="crsyncer status shows the reason")
    if found not in kinds:
        words = {word for name, aliases in kinds.items() for word in (name, name.partition(".")[0], *aliases)}
        meant = did_you_mean(text, sorted(words))
        raise SyncError(
            f"{text} is not synced: no CRD of that name on the robot is annotated{meant}",
            hint=f"synced are: {', '.join(sorted(kinds))}",
        )
    return found


def find_key(text: str, keys: Iterable[Key], *, namespaced: bool = True) -> Key:
    """The object's key. Without a namespace it is the one of `keys` with that name, else it is in `default`.

    A namespace means nothing for an object that is in none, as for kubectl.
    Raises SyncError where several namespaces have one of that name.
    """
    namespace, slash, name = text.rpartition("/")
    if slash:
        key = Key(namespace, name)
        return key if namespaced or key in keys else Key("", name)
    found = sorted(key for key in keys if key.name == name)
    if len(found) > 1:
        raise SyncError(f"{name} may be {' or '.join(map(str, found))}", hint="give NAMESPACE/NAME")
    return found[0] if found else Key("default" if namespaced else "", name)

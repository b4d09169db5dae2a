"""Which kind and which object an operator means by RESOURCE and [NAMESPACE/]NAME."""

from collections.abc import Iterable

from crsyncer.core.model import Key
from crsyncer.errors import SyncError


def find_resource(text: str, known: Iterable[str]) -> str:
    """The kind's full name, of which the plural will do where only one kind has it.

    Raises SyncError where several do.
    """
    kinds = sorted(known)
    found = [kind for kind in kinds if kind.partition(".")[0] == text]
    if text in kinds or not found:
        return text
    if len(found) > 1:
        raise SyncError(f"{text} may be {' or '.join(found)}", hint="give the whole name")
    return found[0]


def find_key(text: str, known: Iterable[Key], *, namespaced: bool = True) -> Key:
    """The object's key. Without a namespace it is the one known object of that name, else it is in `default`.

    Raises SyncError where several namespaces have one of that name.
    """
    namespace, slash, name = text.rpartition("/")
    if slash:
        return Key(namespace, name)
    found = sorted(key for key in known if key.name == name)
    if len(found) > 1:
        raise SyncError(f"{name} may be {' or '.join(map(str, found))}", hint="give NAMESPACE/NAME")
    return found[0] if found else Key("default" if namespaced else "", name)

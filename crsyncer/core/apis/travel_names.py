"""What a CRD that travels is called on each side, and its revision under the names of the other one (C7, C8.1)."""

from functools import partial

from crsyncer.core.apis.revise import Revision, revise
from crsyncer.core.kinds.kind_name import Resource
from crsyncer.core.kinds.sync_policy import Api
from crsyncer.core.model import Json, Side


def name_on(side: Side, resource: str, api: Api) -> str:
    """The name of a kind's CRD on a side; `resource` is the one on the robot."""
    given = api.projection
    if side is Side.ROBOT or given is None:
        return resource
    plural, _, group = resource.partition(".")
    return Resource(group if given.group is None else given.group, given.resource or plural).full_name


def revision_of(crd: Json, resource: str, api: Api) -> Revision:
    """The revision of the source's CRD, as the other side is to have it. Raises ConfigError as `revise`."""
    return revise(crd, api.versions, project=partial(_projected, resource, api))


def _projected(resource: str, api: Api, spec: Json) -> Json:
    """A CRD's spec with the names, scope and versions of the target. Contents stay: there is no conversion.

    What the policy does not give is as at the source, also the kind on the robot. A scope that is given is the cloud's,
    and the robot has the other one: only what differs is given.
    """
    given, target = api.projection, api.source.other
    if given is None:
        return spec
    to_cloud = target is Side.CLOUD
    plural, _, group = name_on(target, resource, api).partition(".")
    names = {**spec["names"], "plural": plural}
    if to_cloud and given.kind:
        names |= {"kind": given.kind, "singular": given.kind.lower(), "listKind": f"{given.kind}List"}
    scope = spec["scope"]
    if given.namespaced is not None:
        scope = "Namespaced" if given.namespaced is to_cloud else "Cluster"
    both = (api.robots_version, given.version) if to_cloud else (given.version, api.robots_version)
    renamed = {both[0]: both[1]} if all(both) else {}
    versions = [{**each, "name": renamed.get(each["name"], each["name"])} for each in spec["versions"]]
    return {**spec, "group": group, "names": names, "scope": scope, "versions": versions}

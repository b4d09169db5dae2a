"""The admission policies that confine what robots write in the cloud, as manifests.

RBAC knows neither labels nor fields, so the API server itself has to compare the object with who writes it. A policy
is about one kind: kinds can be added one by one. It applies to robots' requests only.
Source: Kubernetes documentation, "Validating Admission Policy" and "Common Expression Language in Kubernetes".
"""

import json
from collections.abc import Mapping

from crsyncer.core.accounts.robot_account import ENROLL, NAME, NAMESPACE_LABEL, ROBOTS, TOKEN_SECONDS, lacks_status
from crsyncer.core.content.annotations import OURS, ROBOT_LABEL
from crsyncer.core.content.object_content import ROBOT
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Json, Side
from crsyncer.core.pair.own_status import OWN_STATUSES
from crsyncer.core.reports.robot_report import ROBOT_SYNC_STATES
from crsyncer.core.requests.calls import API_REVISIONS, API_SETS, CRD_COLLECTION, Collection

_API = "admissionregistration.k8s.io/v1"

_CALLER = f"""\
'system:serviceaccounts:{ROBOTS}' in request.userInfo.groups
|| request.userInfo.username.matches('^system:serviceaccount:robot-[^:]*:crsyncer$')
|| request.userInfo.username.startsWith('robot:')"""
_ROBOT = f"""\
request.userInfo.username.matches('^system:serviceaccount:{ROBOTS}:{NAME}$')
? request.userInfo.username.split(':')[3]
: request.userInfo.username.matches('^system:serviceaccount:robot-{NAME}:crsyncer$')
? request.userInfo.username.split(':')[2].substring(6)
: request.userInfo.username.matches('^robot:{NAME}$')
? request.userInfo.username.substring(6) : ''"""
_MAKES_TOKENS = f"""\
request.userInfo.username.matches('^system:serviceaccount:robot-[^:]*:{ENROLL}$')
|| request.userInfo.username.startsWith('system:serviceaccount:{ENROLL}:')"""
_ROBOT_OF_TOKENS = f"""\
request.userInfo.username.matches('^system:serviceaccount:robot-{NAME}:{ENROLL}$')
? request.userInfo.username.split(':')[2].substring(6)
: request.userInfo.username.matches('^system:serviceaccount:{ENROLL}:{NAME}$')
? request.userInfo.username.split(':')[3]
: {_ROBOT}"""
_IS_STATUS = "request.operation == 'UPDATE' && request.?subResource.orValue('') == 'status'"
# Every field that may be set by hand is compared: a version that compared .spec let other fields through.
_IS_STATUS_ONLY = """\
request.operation == 'UPDATE' && request.?subResource.orValue('') == '' && variables.oldLabels == variables.newLabels
&& object.metadata.?annotations.orValue({}) == oldObject.metadata.?annotations.orValue({})
&& object.metadata.?generateName.orValue('') == oldObject.metadata.?generateName.orValue('')
&& object.metadata.?finalizers.orValue([]) == oldObject.metadata.?finalizers.orValue([])
&& object.metadata.?ownerReferences.orValue([]) == oldObject.metadata.?ownerReferences.orValue([])
&& object.all(k, k in ['metadata', 'status'] || (k in oldObject && object[k] == oldObject[k]))
&& oldObject.all(k, k in ['metadata', 'status'] || k in object)"""
# The one finalizer of the robot, and nothing else; the order of the others stays (C6.2).
_IS_FINALIZER = """\
request.operation == 'UPDATE' && request.?subResource.orValue('') == '' && variables.oldLabels == variables.newLabels
&& variables.oldFinalizers.filter(f, f != variables.mine) == variables.newFinalizers.filter(f, f != variables.mine)
&& object.metadata.?annotations.orValue({}) == oldObject.metadata.?annotations.orValue({})
&& object.metadata.?generateName.orValue('') == oldObject.metadata.?generateName.orValue('')
&& object.metadata.?ownerReferences.orValue([]) == oldObject.metadata.?ownerReferences.orValue([])
&& object.all(k, k == 'metadata' || (k in oldObject && object[k] == oldObject[k]))
&& oldObject.all(k, k in object)"""
_IS_WRITE = "request.operation in ['CREATE', 'UPDATE'] && request.?subResource.orValue('') == ''"
_NO_NEW_CONVERSION = """\
object == null || object.spec.?conversion.?strategy.orValue('None') == 'None'
|| (oldObject != null && object.spec.?conversion == oldObject.spec.?conversion)"""
_AT_HOME = """\
!request.userInfo.username.startsWith('system:serviceaccount:robot-')
|| request.?namespace.orValue('') == 'robot-' + variables.robot"""


def _text(value: str) -> str:
    """A string as CEL writes it."""
    return json.dumps(value, ensure_ascii=False)


def _metadata(side: str, field: str, empty: str) -> str:
    """A field of the metadata of `object` or `oldObject`, which is null where there is no such object."""
    return f"{side} == null ? {empty} : {side}.metadata.?{field}.orValue({empty})"


def _old_and_new(field: str, empty: str) -> dict[str, str]:
    """The variables with a field of the metadata of the object as it was, and as it shall be."""
    name = field.lower()
    return {f"old{field}": _metadata("oldObject", name, empty), f"new{field}": _metadata("object", name, empty)}


def kind_policy(policy: KindPolicy) -> Json:
    """What robots may write of a kind: the status of their own objects, or their own copies (S2.1, S4, S5.3)."""
    variables = {"robot": _ROBOT, **_old_and_new("Labels", "{}")}
    validations = [_validation("variables.robot != ''", "malformed robot identity")]
    if policy.upstream is Side.CLOUD and policy.related:  # originals are never written (C5.4)
        validations.append(_validation("false", "a robot may only read it"))
    elif policy.upstream is Side.CLOUD:
        _confine_reports(policy, variables, validations)
    else:
        _confine_copies(policy, variables, validations)
    validations.append(_validation(_AT_HOME, "object is not in this robot's namespace"))
    return _admission_policy(
        f"crsyncer-robot-writes.{policy.in_cloud.resource}",
        rules=[_every(policy.in_cloud.objects(""))],
        variables=variables,
        validations=validations,
    )


def _confine_reports(policy: KindPolicy, variables: dict[str, str], validations: list[Json]) -> None:
    """The rules where the cloud owns the objects, and the robot their status."""
    variables["isStatus"] = _IS_STATUS
    status = "variables.isStatus"
    if lacks_status(policy):
        variables["isStatusOnly"] = _IS_STATUS_ONLY
        status += " || variables.isStatusOnly"
    allowed = "a robot may only write status"
    if policy.blocking:
        variables["mine"] = f"{_text(OURS + 'robot-')} + variables.robot"
        variables |= _old_and_new("Finalizers", "[]")
        variables["isFinalizer"] = _IS_FINALIZER
        status += " || variables.isFinalizer"
        allowed += " and its own finalizer"
    validations.append(_validation(status, allowed))
    if policy.filtered:
        own = f"variables.oldLabels[?{_text(ROBOT_LABEL)}].orValue('') == variables.robot"
        if policy.blocking:  # whose label has changed, still has to be released (C6.3)
            own += "\n|| (variables.isFinalizer && !(variables.mine in variables.newFinalizers))"
        validations.append(_validation(own, "object is not labelled for this robot"))
    if policy.subtree is not None:
        key = _text(policy.subtree)
        variables["newStatus"] = "object == null ? {} : object.?status.orValue({})"
        variables["oldStatus"] = "oldObject == null ? {} : oldObject.?status.orValue({})"
        same = (
            f"variables.newStatus.all(k, k == {key}\n"
            "|| (k in variables.oldStatus && variables.newStatus[k] == variables.oldStatus[k]))\n"
            f"&& variables.oldStatus.all(k, k == {key} || k in variables.newStatus)"
        )
        validations.append(_validation(same, f"a robot may only write status.{policy.subtree}"))


def _confine_copies(policy: KindPolicy, variables: dict[str, str], validations: list[Json]) -> None:
    """The rules where the robot owns the objects: it may write those with its signature, and sign no others (S5.3)."""
    variables |= _old_and_new("Annotations", "{}")
    allowed = (
        "request.operation in ['CREATE', 'UPDATE', 'DELETE'] && request.?subResource.orValue('') in ['', 'status']"
    )
    validations.append(_validation(allowed, "a robot may only write its copies and their status"))
    validations.append(_validation(_both("Annotations", ROBOT), "the copy is not this robot's"))
    if policy.filtered:
        validations.append(_validation(_both("Labels", ROBOT_LABEL), "object is not labelled for this robot"))
    else:
        own = f"variables.newLabels[?{_text(ROBOT_LABEL)}].orValue('') in ['', variables.robot]"
        validations.append(_validation(own, "object is labelled for another robot"))
    if policy.in_cloud.resource == ROBOT_SYNC_STATES.resource:  # or it takes the name of another robot's report (F9.1)
        text = "object == null || object.metadata.name == variables.robot"
        validations.append(_validation(text, "a robot's report has its name"))
    if policy.in_cloud.resource == OWN_STATUSES.resource:  # SOURCEID-ROBOT: a digest has 24 digits (F10.3)
        own = "object.metadata.name.matches('^[0-9a-f]{24}-') && object.metadata.name.substring(25) == variables.robot"
        validations.append(_validation(f"object == null || ({own})", "the name ends with the robot's"))
    if policy.sensitive:
        text = "object == null || object.?type.orValue('') != 'kubernetes.io/service-account-token'"
        validations.append(_validation(text, "a robot may not make tokens"))
    for field in ("finalizers", "ownerReferences"):
        before = _metadata("oldObject", field, "[]")
        kept = f"object == null\n|| object.metadata.?{field}.orValue([]) == ({before})"
        validations.append(_validation(kept, f"a robot may not change {field}"))


def _both(field: str, key: str) -> str:
    """The object as it was, and as it shall be, belongs to this robot by a label or annotation."""
    return "\n&& ".join(
        f"({side} == null || variables.{age}{field}[?{_text(key)}].orValue('') == variables.robot)"
        for side, age in (("oldObject", "old"), ("object", "new"))
    )


def token_policy() -> Json:
    """The tokens that a robot's accounts may make, where a role lets them: for itself, short, and revocable.

    The token of an account that only makes tokens does not end. So what it makes is bound to a Secret: the server
    writes the Secret's uid into the token, and takes the token no longer once that Secret is deleted.
    """
    own = f"""\
request.operation == 'CREATE' && request.?subResource.orValue('') == 'token'
&& (variables.hasNamespace
? request.name == 'crsyncer' && request.namespace == 'robot-' + variables.robot
: request.name == variables.robot && request.namespace == '{ROBOTS}')"""
    bound = f"""\
!({_MAKES_TOKENS})
|| (object.spec.?boundObjectRef.?kind.orValue('') == 'Secret'
&& object.spec.?boundObjectRef.?name.orValue('') == (variables.hasNamespace ? '{ENROLL}' : variables.robot))"""
    tokens = {
        "apiGroups": [""],
        "apiVersions": ["*"],
        "operations": ["CREATE"],
        "resources": ["serviceaccounts/token"],
    }
    return _admission_policy(
        "crsyncer-robot-tokens",
        rules=[tokens],
        variables={
            "robot": _ROBOT_OF_TOKENS,
            "hasNamespace": "request.userInfo.username.startsWith('system:serviceaccount:robot-')",
        },
        validations=[
            _validation("variables.robot != ''", "malformed robot identity"),
            _validation(own, "a robot may only renew its own token"),
            _validation(
                f"object.spec.expirationSeconds <= {TOKEN_SECONDS}", "a robot's token lives for an hour at most"
            ),
            _validation(bound, "a robot's token is bound to the Secret that locks the robot out when it is deleted"),
        ],
        caller=f"{_CALLER}\n|| {_MAKES_TOKENS}",
    )


def publishing_policies() -> tuple[Json, Json]:
    """What robots may write of the CRDs that they publish, and of their revisions and APISets (C8).

    RBAC cannot say which CRDs an account creates. So it may create what its role lets it update, which RBAC does say.
    """
    crds = _admission_policy(
        "crsyncer-robot-crds",
        rules=[_every(CRD_COLLECTION)],
        variables={"robot": _ROBOT, **_old_and_new("Annotations", "{}")},
        validations=[
            _validation("variables.robot != ''", "malformed robot identity"),
            _validation(_IS_WRITE, "a robot may only create and update CRDs"),
            _validation(_both("Annotations", ROBOT), "the CRD was not made by this robot"),
            _validation(_NO_NEW_CONVERSION, "a robot may not have objects sent to a conversion webhook"),
            _validation(_may_update("object == null ? '' : object.metadata.name"), "a robot may not publish this CRD"),
        ],
    )
    is_revision = f"request.resource.resource == '{API_REVISIONS.plural}'"
    name = "(object == null ? '' : object.metadata.name)"
    of_revision = f"{name}.substring({name}.indexOf('.') + 1)"
    apis = _admission_policy(
        "crsyncer-robot-apis",
        rules=[_every(API_REVISIONS), _every(API_SETS)],
        variables={"robot": _ROBOT},
        validations=[
            _validation("variables.robot != ''", "malformed robot identity"),
            _validation(_IS_WRITE, "a robot may only create and update these objects"),
            _validation(f"{is_revision}\n|| {name} == 'crsyncer-' + variables.robot", "a robot has one APISet"),
            _validation(f"!({is_revision}) || request.operation == 'CREATE'", "a robot changes no APIRevision"),
            _validation(
                f"!({is_revision})\n|| {_may_update(of_revision)}",
                "a robot may not publish this CRD",
            ),
        ],
    )
    return crds, apis


def _every(collection: Collection) -> Json:
    """All requests that write objects of a collection."""
    plural = collection.plural
    resources = [plural, f"{plural}/*"]
    return {"apiGroups": [collection.group], "apiVersions": ["*"], "operations": ["*"], "resources": resources}


def _may_update(name: str) -> str:
    """Whether the caller's role lets it update the CRD of a name, an expression."""
    review = f"authorizer.group('{CRD_COLLECTION.group}').resource('{CRD_COLLECTION.plural}')"
    return f"{review}.name({name}).check('update').allowed()"


def label_policy(policy: KindPolicy) -> Json:
    """In a robot's namespace every object needs that robot's label, whoever writes it; else no agent would sync it.

    Terminating objects are exempt: their finalizers are removed by an update.
    """
    expression = (
        "object.metadata.?deletionTimestamp.hasValue()\n"
        f"|| object.metadata.?labels[?{_text(ROBOT_LABEL)}].orValue('')\n"
        f"== namespaceObject.metadata.labels[{_text(NAMESPACE_LABEL)}]"
    )
    writes = {
        "apiGroups": [policy.in_cloud.group],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [policy.in_cloud.plural],
    }
    selector = {"matchExpressions": [{"key": NAMESPACE_LABEL, "operator": "Exists"}]}
    return _object(
        "ValidatingAdmissionPolicy",
        f"crsyncer-label-matches-namespace.{policy.in_cloud.resource}",
        {
            "failurePolicy": "Fail",
            "matchConstraints": {"namespaceSelector": selector, "resourceRules": [writes]},
            "validations": [
                {
                    "expression": expression,
                    "message": f"crsyncer: the label {ROBOT_LABEL} is not that of the robot with this namespace",
                }
            ],
        },
    )


def binding(policy: Json, *, audit: bool) -> Json:
    """Puts a policy into force; with `audit` it denies nothing, and warns and writes the audit log instead."""
    name = policy["metadata"]["name"]
    actions = ["Audit", "Warn"] if audit else ["Deny", "Audit"]
    return _object("ValidatingAdmissionPolicyBinding", name, {"policyName": name, "validationActions": actions})


def _admission_policy(
    name: str, *, rules: list[Json], variables: Mapping[str, str], validations: list[Json], caller: str = _CALLER
) -> Json:
    return _object(
        "ValidatingAdmissionPolicy",
        name,
        {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": rules},
            "matchConditions": [{"name": "caller-is-a-robot", "expression": caller}],
            "variables": [{"name": key, "expression": expression} for key, expression in variables.items()],
            "validations": validations,
        },
    )


def _validation(expression: str, message: str) -> Json:
    return {"expression": expression, "message": f"crsyncer: {message}", "reason": "Forbidden"}


def _object(kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": name}, "spec": spec}

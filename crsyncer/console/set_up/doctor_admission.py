"""Judges the cloud's admission policies for `crsyncer doctor`: are they in force, and as `cloud-manifests` prints them?

A robot's own account may not read them, and needs not: this is for whoever administers the cloud.
"""

from collections.abc import Iterable, Iterator, Sequence

from crsyncer.console.confinement.admission_policies import kind_policy, label_policy, token_policy
from crsyncer.console.set_up.doctor_report import Check, Mark
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.model import Json, Side
from crsyncer.core.requests.calls import Collection

_GROUP = "admissionregistration.k8s.io"
POLICIES = Collection(_GROUP, "v1", "validatingadmissionpolicies")
BINDINGS = Collection(_GROUP, "v1", "validatingadmissionpolicybindings")
_OURS, _WRITES = "crsyncer-", "crsyncer-robot-writes"
_APPLY = "apply what crsyncer cloud-manifests prints"
_Fault = tuple[Mark, str, str]
_NO_WRITES = (Mark.FAIL, "no admission policy confines what robots write", _APPLY)
_NO_TOKENS = (Mark.FAIL, "no admission policy confines the tokens that robots make: a stolen one may never end", _APPLY)


def judge_admission(policies: Sequence[Json], bindings: Sequence[Json], kinds: Iterable[KindPolicy]) -> list[Check]:
    """A check for each kind that policies of ours are about, and one for the policies about all kinds.

    A kind without any is confined in another way, or not.
    """
    found: list[Check] = []
    for kind in kinds:
        about = [each for each in policies if each["metadata"]["name"].startswith(_OURS) and _applies(each, kind)]
        if about:
            missing = [] if any(each["metadata"]["name"].startswith(_WRITES) for each in about) else [_NO_WRITES]
            faults = [*missing, *_faults(about, bindings, (kind_policy(kind), label_policy(kind)))]
            good = (Mark.OK, f"robots are confined by {', '.join(each['metadata']['name'] for each in about)}", "")
            found += [
                Check("confinement", mark, f"{kind.resource}: {message}", hint, Side.CLOUD, kind.resource)
                for mark, message, hint in faults or [good]
            ]
    if found:
        tokens = token_policy()
        about = [each for each in policies if each["metadata"]["name"] == tokens["metadata"]["name"]]
        faults = list(_faults(about, bindings, (tokens,))) if about else [_NO_TOKENS]
        good = (Mark.OK, f"the tokens that robots make are confined by {tokens['metadata']['name']}", "")
        found += [Check("confinement", *fault, Side.CLOUD) for fault in faults or [good]]
    return found


def _faults(about: Sequence[Json], bindings: Sequence[Json], printed: Sequence[Json]) -> Iterator[_Fault]:
    """What is wrong with policies, beside those that this version prints."""
    shipped = {each["metadata"]["name"]: each for each in printed}
    for each in about:
        name = each["metadata"]["name"]
        actions = {
            action
            for binding in bindings
            if binding["spec"]["policyName"] == name
            for action in binding["spec"]["validationActions"]
        }
        warnings = ((each.get("status") or {}).get("typeChecking") or {}).get("expressionWarnings")
        if not actions:
            yield Mark.FAIL, f"the admission policy {name} has no binding, so it refuses nothing", _APPLY
        elif "Deny" not in actions:
            hint = "when nothing is warned of any more, apply what crsyncer cloud-manifests prints without --audit"
            yield Mark.WARN, f"the admission policy {name} only warns: it refuses nothing", hint
        if warnings:
            yield Mark.FAIL, f"an expression of the admission policy {name} is wrong: {warnings[0]['warning']}", _APPLY
        elif name in shipped and _expressions(each) != _expressions(shipped[name]):
            yield Mark.WARN, f"the admission policy {name} is not the one that this version prints", _APPLY


def _applies(policy: Json, kind: KindPolicy) -> bool:
    """Whether a policy is about a kind's objects, or about their subresources."""
    group, plural = kind.in_cloud.group, kind.in_cloud.plural
    return any(
        {group, "*"} & set(rule["apiGroups"]) and {plural, f"{plural}/*", "*", "*/*"} & set(rule["resources"])
        for rule in policy["spec"]["matchConstraints"].get("resourceRules", ())
    )


def _expressions(policy: Json) -> list[str]:
    spec = policy["spec"]
    parts = ("matchConditions", "variables", "validations")
    return [" ".join(each["expression"].split()) for part in parts for each in spec.get(part) or ()]

"""Reads the demo's kinds: CRDs from a folder, and objects that their schemas accept."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from crsyncer.core.content.annotations import ROBOT_LABEL
from crsyncer.core.kinds.kind_policy import KindPolicy
from crsyncer.core.kinds.read_kind import read_policy
from crsyncer.errors import SyncError
from crsyncer.sandbox.resource import Resource

OWN = Path(__file__).with_name("demo")
"""The story's own CRDs."""

Json = dict[str, Any]
_NOT_CONTENT = ("apiVersion", "kind", "metadata", "status")


@dataclass(frozen=True, slots=True)
class Kind:
    """One annotated CRD, and the content of its objects in each round of the story, from 1 on."""

    crd: Json
    resource: Resource
    policy: KindPolicy
    examples: tuple[Json, ...] = ()
    """Objects that came with the CRD; without any, objects are generated from the schema."""

    @property
    def name(self) -> str:
        """As in commands: orders."""
        return self.resource.plural

    @property
    def subresource(self) -> bool:
        """Whether the status is written at /status."""
        return "status" in (self._version.get("subresources") or {})

    def object(self, number: int, spec: int) -> Json:
        """The story's object of this number, as it is created upstream."""
        labels = {ROBOT_LABEL: self.policy.robot} if self.policy.filtered else None
        name = f"{self.resource.kind.lower()}-{number}"
        return self.resource.object(name, labels=labels, **self.content(spec))

    def content(self, number: int) -> Json:
        """The content of an object in a round: usually its `spec`."""
        if self.examples:
            return content(self.examples[min(number, len(self.examples)) - 1])
        schema = self._schema
        properties = {key: value for key, value in schema.get("properties", {}).items() if key not in _NOT_CONTENT}
        if not properties and schema.get("x-kubernetes-preserve-unknown-fields"):
            return {"spec": {"round": number}}
        made: Json = sample({"type": "object", **schema, "properties": properties}, number)
        return made

    def report(self, number: int) -> Json | None:
        """The status that a controller reports in a round; None when the schema keeps no status."""
        if self.examples:
            return self.examples[min(number, len(self.examples)) - 1].get("status")
        schema = self._schema.get("properties", {}).get("status")
        if schema is None:
            schema = {"x-kubernetes-preserve-unknown-fields": True}
            if not self._schema.get("x-kubernetes-preserve-unknown-fields"):
                return None
        # observedGeneration must be a real generation of the object, so it is not generated.
        kept = {key: value for key, value in schema.get("properties", {}).items() if key != "observedGeneration"}
        subtree = self.policy.subtree
        if subtree is None:
            made: Json = sample({**schema, "properties": kept}, number)
            return made
        return {subtree: sample(kept.get(subtree, {}), number, subtree)}

    def synced(self, status: Json | None) -> Any:
        """The part of a status that is synced."""
        subtree = self.policy.subtree
        return status if subtree is None else (status or {}).get(subtree)

    @property
    def _version(self) -> Json:
        return next(each for each in self.crd["spec"]["versions"] if each["storage"])

    @property
    def _schema(self) -> Json:
        schema: Json = self._version.get("schema", {}).get("openAPIV3Schema", {})
        return schema


def content(obj: Mapping[str, Any]) -> Json:
    """The content of an object, without status and metadata."""
    return {key: value for key, value in obj.items() if key not in _NOT_CONTENT}


def load(folder: Path, robot: str) -> list[Kind]:
    """The annotated CRDs in a folder's YAML files, and the objects in them as examples, in their order.

    Raises SyncError when a file is no YAML or when nothing there is to be synced.
    """
    documents: list[Json] = []
    for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
        try:
            documents += [each for each in yaml.safe_load_all(path.read_text()) if isinstance(each, dict)]
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise SyncError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    kinds = []
    for crd in documents:
        policy = read_policy(crd, robot) if crd.get("kind") == "CustomResourceDefinition" else None
        if policy is None:
            continue
        if policy.problem:
            raise SyncError(f"{policy.resource}: {policy.problem}")
        resource = Resource.of_crd(crd)
        wanted = (resource.api_version, resource.kind)
        examples = (each for each in documents if (each.get("apiVersion"), each.get("kind")) == wanted)
        kinds.append(Kind(crd, resource, policy, tuple(examples)))
    if not kinds:
        raise SyncError(
            f"no CRD in {folder} is annotated to be synced",
            hint="annotate one with cr-syncer.cloudrobotics.com/spec-source: cloud",
        )
    return kinds


def sample(schema: Mapping[str, Any], number: int, name: str = "value") -> Any:
    """A value that a CRD's schema accepts, another one for each `number` where the schema has more than one.

    Not followed: patterns and rules in CEL. What is optional and has a pattern is left out.
    """
    if "enum" in schema:
        return schema["enum"][(number - 1) % len(schema["enum"])]
    match schema.get("type"):
        case "string":
            return _string(schema, number, name)
        case "integer" | "number":
            return _number(schema, number)
        case "boolean":
            return number % 2 == 1
        case "array":
            items = schema.get("items", {})
            return [sample(items, number + i, name) for i in range(max(1, schema.get("minItems", 0)))]
        case _ if schema.get("x-kubernetes-int-or-string"):
            return number
        case _:
            return _object(schema, number)


def _object(schema: Mapping[str, Any], number: int) -> Json:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    optional = [key for key, each in properties.items() if key not in required and "pattern" not in each]
    chosen = [*required, *optional][: schema.get("maxProperties")]
    made = {key: sample(properties.get(key, {}), number, key) for key in chosen}
    if not made and isinstance(schema.get("additionalProperties"), dict):
        return {"key": sample(schema["additionalProperties"], number, "value")}
    return made or ({"round": number} if _open(schema) else {})


def _open(schema: Mapping[str, Any]) -> bool:
    unstructured = not schema.get("type") and not schema.get("properties")
    return bool(
        schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("additionalProperties") or unstructured
    )


def _string(schema: Mapping[str, Any], number: int, name: str) -> str:
    match schema.get("format"):
        case "date-time":
            return f"2030-01-01T00:00:{number % 60:02}Z"
        case "date":
            return f"2030-01-{number % 28 + 1:02}"
        case "byte":
            return base64.b64encode(str(number).encode()).decode()
        case "ipv4" | "ip":
            return f"192.0.2.{number % 256}"
        case "uri":
            return f"https://example.com/{number}"
        case "uuid":
            return f"00000000-0000-4000-8000-{number:012}"
        case "duration":
            return f"{number}s"
    text = f"{name}-{number}".rjust(schema.get("minLength", 0), "x")
    return text[-schema.get("maxLength", len(text)) :]


def _number(schema: Mapping[str, Any], number: int) -> float:
    step: float = schema.get("multipleOf", 1)
    low: float = schema.get("minimum", 0) // step * step
    high: float = schema.get("maximum", low + (number + 1) * step) // step * step
    return min(low + number * step, high)

"""S3.5: what differs between a contested copy and what upstream wants, as paths that an operator can read."""

from typing import Any

import pytest

from crsyncer.core.content.object_content import APPLIED, differences


def obj(*, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None, **fields: Any) -> Any:
    """An object with these top-level fields."""
    return {"metadata": {"name": "a", "labels": labels or {}, "annotations": annotations or {}}, **fields}


@pytest.mark.parametrize(
    ("wanted", "found", "paths"),
    [
        (obj(spec={"x": 1}), obj(spec={"x": 1.0}), []),
        (obj(spec={"x": 1, "y": {"z": [1]}}), obj(spec={"x": 2, "y": {"z": [1, 2]}}), ["spec.x", "spec.y.z"]),
        (obj(spec={"x": 1}), obj(data={"k": "v"}), ["data", "spec"]),
        (obj(labels={"zone": "b"}), obj(labels={"zone": "c"}), ["metadata.labels.zone"]),
        (obj(annotations={"note": "b"}), obj(), ["metadata.annotations.note"]),
        (obj(annotations={APPLIED: "{}"}, status={"n": 1}), obj(status={"n": 2}), []),
    ],
    ids=["same meaning", "deep", "whole fields", "label", "annotation", "not content"],
)
def test_S3_5_differences_are_named_by_their_paths(wanted: Any, found: Any, paths: list[str]) -> None:
    assert differences(wanted, found) == paths

"""Settings nested too deeply to be read."""

import pytest

from tests.adapters.config_kit import flags, refusal

DEEP = [b"[" * 200_000, b"{a: " * 60_000, b"- " * 100_000, b"\n".join(b" " * level + b"a:" for level in range(400))]


@pytest.mark.parametrize("text", DEEP, ids=["lists", "mappings", "items", "indented"])
def test_a_file_nested_deeply_is_refused_in_one_line_and_ends_nothing(place, text):
    (place / "deep").write_bytes(text)
    assert f"{place}/deep:" in refusal(flags(place, config=str(place / "deep")))
    assert "not YAML" in refusal(flags(place, cloud_kubeconfig=str(place / "deep")))

"""A store in memory keeps values as one on disk does, for as long as the process lives."""

from crsyncer.adapters.memory_meta import MemoryMeta


def test_a_value_is_kept_as_json_and_is_nobody_elses():
    store, value = MemoryMeta(), {"evidence": ("uid", 1)}
    assert store.get_meta("identity") is None
    store.put_meta("identity", value)
    value["evidence"] = ("other", 2)
    store.get_meta("identity")["evidence"].clear()
    assert store.get_meta("identity") == {"evidence": ["uid", 1]}
    assert MemoryMeta().get_meta("identity") is None

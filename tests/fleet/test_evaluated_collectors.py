"""What is told of collectors that are missing, bad, or meet a status that they cannot evaluate (F7.4, F7.2)."""

from tests.fleet.returns import COUNT, NAME, PHASE, Returns, column, combined


def test_F7_4_missing_and_bad_collectors_are_told_and_the_others_go_on():
    found = Returns("r1")
    found.placement(statusCollectors=["b", "a", "c"])
    found.goal()
    found.replica("r1", {"phase": "Ready"})
    assert found.evaluations.collected("site/all") == (
        False, "CollectorMissing", "there is no StatusCollector b, a, c",
    )  # fmt: skip
    found.collector("a", select=[column("x", "robot")])
    found.collector("b", select=[PHASE])
    found.collector("c", select=[NAME])
    status, reason, message = found.evaluations.collected("site/all") or (True, "", "")
    assert (status, reason) == (False, "BadExpression")
    assert message.startswith("StatusCollector a: spec.select[0].def: line 1, column 1: undeclared")
    assert found.evaluations.collector_errors("a")[0] in message
    assert found.evaluations.collector_errors("b") == ()
    found.write()
    results = found.objects[combined()]["results"]
    assert [each["collector"] for each in results] == ["b", "c"]
    found.collector("a", select=[NAME, PHASE])
    assert found.evaluations.collected("site/all") == (True, "Collected", "")
    assert found.rows(place=1) == [["r1", "Ready"]]
    found.collector_gone("b")
    assert found.evaluations.collected("site/all") == (False, "CollectorMissing", "there is no StatusCollector b")
    assert found.rows(place=0) == [["r1", "Ready"]]


def test_F7_2_a_status_that_cannot_be_evaluated_is_a_row_error_of_each_collector():
    found = Returns("r1", "r2")
    found.placement(statusCollectors=["a", "b", "bad"])
    found.collector("a", select=[PHASE])
    found.collector("b", combinedFields=[COUNT])
    found.collector("bad")
    found.goal()
    found.replica("r1", {"phase": "Ready\0"})
    found.replica("r2", {"phase": "Ready"})
    assert found.result()["rowErrors"] == ["r1: the object has a text with a NUL character"]
    assert found.rows(place=1) == [["1"]]
    assert found.rows() == [["Ready"]]

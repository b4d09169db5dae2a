"""What a probe asks, and whom: one kind that fails is not the side (S8.2, S9.1, S9.5)."""

from collections.abc import Mapping

import pytest

from crsyncer.core.requests.calls import Call
from crsyncer.errors import NotAllowed, Throttled, Unsure
from crsyncer.ports import Reply
from crsyncer.runtime.probe import Probe

GENERAL = "general"
KINDS = ("a", "b", "c", "d")
TELLS = Reply(200, {"metadata": {"resourceVersion": "7"}})
THERE = Reply(200, {"gitVersion": "v1"})
BUSY = Reply(429, {"message": "busy"}, retry_after=1.0)
BROKEN = Reply(500, {}, text="broken")
GONE = Reply(404, {}, text="404 page not found")
FORBIDDEN = Reply(403, {})
UNAUTHORIZED = Reply(401, {})


class Bench:
    """A server that answers as it is told, None: not at all; and what it was asked, in order."""

    def __init__(self, *kinds: str) -> None:
        self.asked: list[str] = []
        self._questions = [Call("list", "GET", name) for name in (*kinds, GENERAL)]
        self._probe = Probe(self._answer)
        self._answers: Mapping[str, Reply | None] = {}

    async def probe(self, answers: Mapping[str, Reply | None]) -> tuple[Reply, bool]:
        """One probe; whoever is not mentioned tells, and the general question is answered without a revision."""
        self.asked.clear()
        self._answers = {GENERAL: THERE} | dict(answers)
        return await self._probe.send(self._questions)

    async def _answer(self, call: Call) -> Reply:
        self.asked.append(call.path)
        reply = self._answers.get(call.path, TELLS)
        if reply is None:
            raise Unsure("no answer")
        return reply


async def test_a_kind_that_tells_is_all_that_is_asked() -> None:
    bench = Bench(*KINDS)
    for _ in range(2):
        assert await bench.probe({}) == (TELLS, True)
        assert bench.asked == ["a"]


@pytest.mark.parametrize("kind", [BUSY, BROKEN, GONE, FORBIDDEN])
async def test_S9_5_where_a_kind_does_not_tell_another_one_is_asked_and_stays_the_one(kind: Reply) -> None:
    bench = Bench(*KINDS)
    assert await bench.probe({"a": kind}) == (TELLS, True)
    assert bench.asked == ["a", GENERAL, "b"]
    assert await bench.probe({"a": kind}) == (TELLS, True)
    assert bench.asked == ["b"]


async def test_S9_5_after_silence_another_kind_is_asked() -> None:
    bench = Bench(*KINDS)
    with pytest.raises(Unsure):
        await bench.probe({"a": None})
    assert await bench.probe({"a": None}) == (TELLS, True)
    assert bench.asked == ["b"]


async def test_S9_1_a_server_that_refuses_everybody_is_asked_one_question_at_a_time() -> None:
    bench = Bench(*KINDS)
    nobody = dict.fromkeys((*KINDS, GENERAL), BROKEN)
    for asked in (["a", GENERAL], [GENERAL], [GENERAL]):
        with pytest.raises(Unsure, match="broken"):
            await bench.probe(nobody)
        assert bench.asked == asked
    assert await bench.probe({}) == (TELLS, True)
    assert bench.asked == [GENERAL, "b"]


@pytest.mark.parametrize(("kind", "general", "error"), [(BUSY, BROKEN, Unsure), (BROKEN, BUSY, Throttled)])
async def test_S9_1_the_general_question_tells_patience_from_trouble(kind: Reply, general: Reply, error: type) -> None:
    with pytest.raises(Unsure) as caught:
        await Bench("a").probe({"a": kind, GENERAL: general})
    assert caught.type is error


@pytest.mark.parametrize("general", [GONE, FORBIDDEN])
async def test_a_gateway_that_hides_the_general_question_is_as_well_as_its_kinds(general: Reply) -> None:
    with pytest.raises(Unsure, match="broken"):
        await Bench("a", "b").probe({"a": BROKEN, "b": BROKEN, GENERAL: general})
    assert await Bench("a", "b").probe({"a": BROKEN, GENERAL: general}) == (TELLS, True)
    assert await Bench().probe({GENERAL: general}) == (general, True)


async def test_S8_2_who_is_there_and_cannot_tell_now_is_asked_again_of_other_kinds() -> None:
    bench = Bench(*KINDS)
    kinds = dict.fromkeys(KINDS, BUSY)
    for asked in (["a", GENERAL, "b", "c"], [GENERAL, "d", "a", "b"]):
        assert await bench.probe(kinds) == (THERE, False)
        assert bench.asked == asked
    assert await bench.probe({GENERAL: TELLS}) == (TELLS, True)
    assert bench.asked == [GENERAL]


async def test_S8_2_where_no_kind_may_be_listed_there_is_no_more_to_be_told() -> None:
    assert await Bench("a").probe({"a": FORBIDDEN}) == (FORBIDDEN, True)
    assert await Bench().probe({}) == (THERE, True)


async def test_S10_a_credential_that_is_refused_is_about_everybody() -> None:
    bench = Bench(*KINDS)
    with pytest.raises(NotAllowed, match="the credential is refused"):
        await bench.probe({"a": UNAUTHORIZED})
    assert bench.asked == ["a"]

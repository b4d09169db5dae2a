"""The highest resourceVersion of known objects is what a look at all of them finds."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from crsyncer.core.model import Key
from crsyncer.core.watching.restore_detection import DISTRUSTED
from crsyncer.core.watching.revisions import Revisions, number_of


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of an object."""

    uid: str
    resource_version: str


KEYS = [Key("default", name) for name in "abcdef"]
VERSIONS = st.one_of(st.integers(2, 40).map(str), st.just(DISTRUSTED), st.just("opaque"))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("saw"), st.sampled_from(KEYS), VERSIONS),
        st.tuples(st.just("gone"), st.sampled_from(KEYS), st.just("")),
        st.tuples(st.just("asked"), st.just(KEYS[0]), st.just("")),
        st.tuples(st.just("rewound"), st.just(KEYS[0]), st.just("")),
    ),
    max_size=40,
)


@settings(deadline=None, max_examples=400)
@given(st.dictionaries(st.sampled_from(KEYS), VERSIONS, max_size=3), STEPS)
def test_S8_2_the_bound_is_never_exceeded_and_is_the_highest_version_when_it_is_asked_for(loaded, steps):
    objects = {key: Seen("uid", version) for key, version in loaded.items()}
    revisions = Revisions()
    for what, key, version in [*steps, ("asked", KEYS[0], "")]:
        match what:
            case "saw":
                objects[key] = Seen("uid", version)
                revisions.saw(key, version)
            case "gone":
                objects.pop(key, None)
            case "rewound":
                objects = {each: Seen("uid", DISTRUSTED) for each in objects}
                revisions.rewound()
        highest = max((number_of(each.resource_version) for each in objects.values()), default=0)
        assert revisions.bound >= highest
        if what == "asked":
            newest = revisions.newest(objects)
            assert revisions.bound == highest
            assert (newest is None) == (highest == 0)
            assert newest is None or number_of(objects[newest].resource_version) == highest

"""Random histories of rollouts break no limit, and each ends well (F8)."""

import pytest

from tests.fleet_model.rollout_machine import run


@pytest.mark.parametrize("seed", range(8))
def test_F8_no_history_of_a_fleet_breaks_the_limits_and_each_one_ends_well(seed):
    run(seed)

"""Leaf values in whole units of the gradients."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import leaves as twin

from hilboost.engine.gradients import layout_of
from hilboost.engine.ops.cpu.criterion import criterion_of
from hilboost.engine.ops.cpu.leaves import LeafRule, round_values, steps_of_totals, unit_of_outputs

PACKING = layout_of(False, False, 2000.0, True, 2000).packing._replace(steps=np.array([0.5, 0.0]))
NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9)


def rounded(round_, values, unit, rate):
    """Values after rounding, and whether they were rounded."""
    found, multiples = np.array(values)[:, None], np.empty(len(values))
    is_rounded = round_(unit, rate, found, multiples)
    return found[:, 0].tolist(), is_rounded


@given(values=NUMBERS, rate=st.floats(0, 1), power=st.integers(-12, 4))
def test_values_are_rounded_if_the_median_is_many_units(values, rate, power):
    given_ = values, 2.0**power, rate
    assert rounded(round_values, *given_) == rounded(twin.round_values, *given_)


@pytest.mark.parametrize(("unit", "rate"), [(2.0, 0.5), (0.0, 0.5), (0.5, 0.0)])
def test_small_outputs_are_not_rounded(unit, rate):
    values = [600.4, -400.8, 2.0]
    assert rounded(round_values, values, 0.5, 0.5) == ([600, -401, 2], True)
    assert rounded(round_values, values, unit, rate) == (values, False)


@pytest.mark.parametrize(
    "changes", [{}, {"steps": np.array([0.5, 0.5])}, {"count_step": 2.0}], ids=str
)
@pytest.mark.parametrize("fewest", [2000.0, 2001.0, np.inf])
def test_the_unit_is_two_steps_where_rows_are_counted_and_many(changes, fewest):
    packing, total = PACKING._replace(**changes), (7 << PACKING.gradient_shift) + 2000
    unit = unit_of_outputs(packing, total, fewest)
    assert unit == twin.unit_of_outputs(packing, total, fewest)
    assert unit == (fewest == 2000 and not changes)


@pytest.mark.parametrize("l2", [0.0, 100.0])
@pytest.mark.parametrize("bounds", [None, (-np.inf, 2900.0)])
@pytest.mark.parametrize(("unit", "is_known"), [(0.0, False), (1.0, True), (10.0, False)])
def test_small_steps_and_other_layouts_need_all_digits(l2, bounds, unit, is_known):
    """The last leaf has no rows."""
    sums, leaves = np.array([5_000_000, -7_000_000, 9, 3_000_000]), np.array([0, 1, 3])
    totals = ((sums << PACKING.gradient_shift) + np.array([500, 400, 1, 0]))[:, None]
    bounds = None if bounds is None else np.tile(np.array(bounds)[:, None], (4, 1, 1))
    given_ = LeafRule(criterion_of(l2), PACKING, totals, bounds), leaves, unit
    values, expected = np.zeros((3, 1)), np.zeros((3, 1))
    assert steps_of_totals(*given_, values) == is_known
    assert twin.steps_of_totals(*given_, expected) == is_known
    np.testing.assert_array_equal(values, expected)

"""Checks of kinds of values."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hilboost.core.loss import Loss
from hilboost.core.plain_values import (
    are_finite,
    as_list,
    entries,
    is_boolean,
    is_class,
    is_integer,
    is_name,
    is_number,
    is_pair,
    real,
)
from hilboost.losses import SquaredError


@pytest.mark.parametrize(
    ("value", "boolean", "number", "integer", "as_float"),
    [
        (True, True, False, False, 1.0),
        (np.True_, True, False, False, np.nan),
        (3, False, True, True, 3.0),
        (np.int8(3), False, True, True, 3.0),
        (Fraction(1, 2), False, True, False, 0.5),
        (10**400, False, True, True, np.inf),
        (Fraction(-(10**400), 3), False, True, False, -np.inf),
        (np.float32(0.5), False, True, False, 0.5),
        ("3", False, False, False, np.nan),
        (None, False, False, False, np.nan),
        (3j, False, False, False, np.nan),
        ([3], False, False, False, np.nan),
    ],
)
def test_numbers(value, boolean, number, integer, as_float):
    assert (is_boolean(value), is_number(value), is_integer(value)) == (boolean, number, integer)
    np.testing.assert_equal(real(value), as_float)


@pytest.mark.parametrize(
    ("value", "listed", "each", "pair"),
    [
        ("ab", ["ab"], ["ab"], False),
        (("a", "b"), ["a", "b"], ["a", "b"], True),
        ({"a": 1, "b": 2}, [{"a": 1, "b": 2}], ["a", "b"], False),
        (3, [3], [3], False),
        ([], [], [], False),
    ],
)
def test_lists(value, listed, each, pair):
    assert (as_list(value), entries(value), is_pair(value)) == (listed, each, pair)


def test_names_and_classes():
    assert is_name(np.str_("auto"), "auto")
    assert not is_name(np.array(["auto"]), "auto")
    assert is_class(SquaredError, Loss)
    assert not is_class(SquaredError(), Loss)
    assert not is_class(dict, Loss)


@pytest.mark.parametrize(
    ("array", "valid"),
    [
        (np.zeros((2, 3)), True),
        (np.zeros((3, 2)), False),
        (np.zeros((2, 3), np.float32), False),
        (np.full((2, 3), np.inf), False),
        ([[0.0] * 3] * 2, False),
    ],
)
def test_finite_arrays(array, valid):
    assert are_finite([(array, (2, 3))]) is valid

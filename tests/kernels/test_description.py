"""Kernels as plain data; the round trip of every kernel is part of the contract."""

import json

import numpy as np
import pytest
from tests.cases import KERNELS, ids

from hilboost.core.errors import IncompatibleParts
from hilboost.kernels import (
    Gaussian,
    Linear,
    Matern,
    OnColumns,
    Polynomial,
    from_description,
    to_description,
)

FOREIGN = [case for case in KERNELS if not case.native]


def test_a_description_is_short_and_plain():
    kernel = OnColumns(Matern(0.1, 2.5), [2, 0]) * np.float64(2) + Polynomial(2)
    assert to_description(kernel) == {
        "type": "sum",
        "parts": [
            {
                "type": "scaled",
                "factor": 2.0,
                "kernel": {
                    "type": "on_columns",
                    "columns": [2, 0],
                    "kernel": {"type": "matern", "length_scale": [0.1], "nu": 2.5},
                },
            },
            {"type": "polynomial", "degree": 2, "offset": 1.0, "scale": 1.0},
        ],
    }


def test_floats_come_back_bit_for_bit():
    scales = np.exp(np.random.default_rng(0).uniform(-700, 700, 200))
    scales[:2] = np.nextafter(0, 1), np.finfo(float).max
    text = json.dumps(to_description(Gaussian(scales)))
    np.testing.assert_array_equal(from_description(json.loads(text)).length_scale, scales)


@pytest.mark.parametrize("case", FOREIGN, ids=ids(FOREIGN))
def test_foreign_kernels_are_refused_wherever_they_stand(case):
    for kernel in (case.make(), Gaussian() + case.make(), OnColumns(case.make(), [0]) * 2):
        with pytest.raises(
            IncompatibleParts, match="support only built-in kernels, not .* Save this model with"
        ):
            to_description(kernel)


def test_a_class_of_the_users_own_is_refused():
    class Mine(Gaussian):
        pass

    with pytest.raises(IncompatibleParts, match="not Mine"):
        to_description(Mine(1.0))


def nested(depth):
    description = {"type": "linear", "offset": 0.0}
    for _ in range(depth):
        description = {"type": "scaled", "factor": 1.0, "kernel": description}
    return description


GAUSSIAN = {"type": "gaussian", "length_scale": [1.0]}


@pytest.mark.parametrize(
    ("description", "message"),
    [
        (None, "described by a dict; got NoneType"),
        ([GAUSSIAN], "described by a dict; got list"),
        ({}, "unknown kernel type None"),
        ({"type": "Gaussian"}, "unknown kernel type 'Gaussian'; valid types:"),
        ({"type": ["gaussian"]}, "unknown kernel type"),
        ({"type": "os.system"}, "unknown kernel type 'os.system'"),
        ({"type": "gaussian"}, r"must have the fields \['length_scale'\]; got \[\]"),
        (
            {**GAUSSIAN, "nu": 1.5},
            r"must have the fields \['length_scale'\]; got \['length_scale', 'nu'",
        ),
        ({**GAUSSIAN, 3: 1.5}, "must have the fields"),
        ({**GAUSSIAN, "length_scale": 1.0}, "'length_scale' .*: expected a nonempty list"),
        ({**GAUSSIAN, "length_scale": []}, "expected a nonempty list"),
        ({**GAUSSIAN, "length_scale": ["1"]}, "expected a number, got str"),
        ({**GAUSSIAN, "length_scale": [True]}, "expected a number, got bool"),
        ({**GAUSSIAN, "length_scale": [None]}, "expected a number, got NoneType"),
        ({**GAUSSIAN, "length_scale": [float("nan")]}, "expected a finite number, got nan"),
        ({**GAUSSIAN, "length_scale": [float("inf")]}, "expected a finite number, got inf"),
        ({**GAUSSIAN, "length_scale": [10**400]}, "expected a finite number, got inf"),
        ({**GAUSSIAN, "length_scale": [-1.0]}, "length_scale must be a positive finite number"),
        ({"type": "matern", "length_scale": [1.0], "nu": 0.7}, "nu of Matern must be"),
        (
            {"type": "polynomial", "degree": 2.0, "offset": 0.0, "scale": 1.0},
            "expected an integer, got float",
        ),
        (
            {"type": "polynomial", "degree": 0, "offset": 0.0, "scale": 1.0},
            "degree must be a positive integer",
        ),
        ({"type": "sum", "parts": []}, "expected a nonempty list"),
        ({"type": "sum", "parts": GAUSSIAN}, "expected a nonempty list"),
        ({"type": "sum", "parts": [GAUSSIAN, "linear"]}, "described by a dict; got str"),
        ({"type": "on_columns", "columns": [0.0], "kernel": GAUSSIAN}, "expected an integer"),
        ({"type": "on_columns", "columns": [10**30], "kernel": GAUSSIAN}, "column indices"),
        ({"type": "scaled", "factor": 0, "kernel": GAUSSIAN}, "factor must be positive"),
        (nested(10_000), "nested too deeply"),
    ],
)
def test_descriptions_that_are_not_are_refused(description, message):
    with pytest.raises(ValueError, match=message):
        from_description(description)


def test_whole_numbers_may_stand_for_floats():
    assert from_description({"type": "linear", "offset": 2}) == Linear(2.0)

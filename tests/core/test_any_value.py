"""Constructors answer a parameter of any kind with an error of ours, in one short line."""

from __future__ import annotations

import inspect
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from hilboost import callbacks, kernels, losses, metrics, outputs, rules
from hilboost.core.errors import HilboostError

VALUES = [
    *(10**5000, Fraction(10**5000), [10**5000], {"a": 10**5000}),
    *(10**400, -(10**400), float("nan"), float("inf"), 1e400j, True, None),
    *(np.array(3.0), np.array(2), np.zeros(3), [], {}, [10**400], object()),
    *(Decimal("1e999"), Fraction(10**400), "x" * 5000, b"text"),
]
NEEDED = {"kernel": kernels.Gaussian(1.0), "parts": (kernels.Gaussian(1.0),), "path": "file"}
LONGEST = 400  # characters
CLASSES = [
    found
    for module in (callbacks, kernels, losses, metrics, outputs, rules)
    for name in module.__all__
    if inspect.isclass(found := getattr(module, name)) and not inspect.isabstract(found)
]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_values_of_all_kinds(kind):
    parameters = [
        one
        for one in inspect.signature(kind).parameters.values()
        if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    ]
    needed = {one.name: NEEDED.get(one.name, 1.0) for one in parameters if one.default is one.empty}
    for one in parameters:
        for value in VALUES[: -2 if one.name == "path" else None]:
            said = ""
            try:
                kind(**(needed | {one.name: value}))
            except HilboostError as error:
                said = str(error)
            assert len(said) < LONGEST, one.name


@pytest.mark.parametrize("kind", [kernels.Constant, losses.Normal, kernels.Matern])
def test_arrays_without_dimensions_are_no_numbers(kind):
    name = {"Matern": "nu", "Constant": "value"}.get(kind.__name__, "scale")
    needed = {"length_scale": 1.0} if name == "nu" else {}
    kind(**needed, **{name: np.float64(1.5)})
    with pytest.raises(HilboostError, match=r"got array\(1\.5\)"):
        kind(**needed, **{name: np.array(1.5)})

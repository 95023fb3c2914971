"""Packed gradients against float64: enough steps for a mean gradient, and the same splits."""

import numpy as np
import pytest

from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.backends.exact_sums import is_whole
from hilboost.backends.threads import ThreadTeam
from hilboost.engine import gradients as packing
from hilboost.engine import stage as fitting
from hilboost.engine.buffers import TreeBuffers
from hilboost.engine.gradients import pack
from hilboost.engine.ops.cpu.fixed_point import WeightedGradients
from hilboost.engine.table import bin_table
from hilboost.engine.tree_data import TreeData

N_BINS = 64
SALT = np.uint64(7)


def draw_weights(rng, kind, y):
    n = len(y)
    return {
        "none": np.empty(0),
        "balanced": np.where(y == 1, n / (2 * y.sum()), n / (2 * (n - y.sum()))),
        "wide": 10 ** rng.uniform(-9, 0, size=n),
        "spread": rng.uniform(0.1, 2, size=n),
    }[kind]


def draw(n, kind, seed=0):
    """A column of bins, and the gradients and hessians of the log loss half way through a fit."""
    rng = np.random.default_rng(seed)
    bins = rng.integers(N_BINS, size=n)
    chance = 1 / (1 + np.exp(1.5 - 0.02 * bins + rng.normal(size=n)))
    y = (rng.uniform(size=n) < chance) * 1.0
    weight = draw_weights(rng, kind, y)
    if kind == "balanced":  # what a fit with these weights would predict
        odds = chance / (1 - chance) * (n - y.sum()) / y.sum()
        chance = odds / (1 + odds)
    guess = np.clip(chance - 0.002 * (bins - N_BINS / 2), 0.01, 0.99)
    return bins, (y - guess)[:, None], (guess * (1 - guess))[:, None], weight


def packed_of(negative, hessian, weight, salt=SALT):
    n = len(negative)
    space = TreeBuffers({}, (), n_rows=n, n_columns=1, n_bins=N_BINS + 1, n_threads=1, max_leaves=2)
    space.rows[:] = np.arange(n)
    learned = WeightedGradients(negative, hessian, weight, space.rows[:0], is_whole(weight))
    table = bin_table(np.zeros((n, 1)), None, N_BINS, 0, ThreadTeam())
    packed = pack(space, learned, True, salt, TreeData(table, ThreadTeam(), {}))
    values = packed.values
    if values is None:
        values = space.ordered(1)[:, None]
    return packed, values


def sums_of(packed, values, bins):
    """Gradient and hessian of every bin, read from integer sums."""
    sums = np.zeros((N_BINS, values.shape[1]), dtype=np.int64)
    np.add.at(sums, bins, values)
    packing = packed.packing
    hessian = (sums[:, 0] >> packing.hessian_shift) & packing.hessian_mask
    gradient = (sums[:, 0] >> packing.gradient_shift) * packing.steps[0]
    return gradient, hessian * packing.steps[1]


def gains_of(gradient, hessian):
    g, h = np.cumsum(gradient)[:-1], np.cumsum(hessian)[:-1]
    whole_g, whole_h = gradient.sum(), hessian.sum()
    return g**2 / h + (whole_g - g) ** 2 / (whole_h - h) - whole_g**2 / whole_h


@pytest.mark.parametrize("n", [140_000, 600_000, 2_000_000])
@pytest.mark.parametrize("kind", ["balanced", "wide", "spread"])
def test_fractional_weights_leave_the_gradient_its_bits(n, kind):
    bins, negative, hessian, weight = draw(n, kind)
    packed, values = packed_of(negative, hessian, weight)
    mean = np.mean(weight * np.abs(negative[:, 0]))
    assert mean / packed.packing.steps[0] >= 256
    for rows in (slice(None), slice(0, n // 500)):  # all rows, and a small node
        here = bins[rows]
        found = sums_of(packed, values[rows], here)
        exact = [np.bincount(here, weight[rows] * x[rows, 0], N_BINS) for x in (negative, hessian)]
        found_gains, gains = gains_of(*found), gains_of(*exact)
        np.testing.assert_allclose(found_gains, gains, rtol=0, atol=2e-4 * gains.max())
        assert gains[found_gains.argmax()] >= (1 - 1e-4) * gains.max()


@pytest.mark.parametrize(
    ("n", "n_channels"), [(1000, 1), (50_000, 2), (200_000, 1), (2_200_000, 2)]
)
def test_channels_without_weights(n, n_channels):
    _, negative, hessian, weight = draw(n, "none")
    packed, values = packed_of(negative, hessian, weight)
    assert len(packed.totals) == n_channels
    assert values.shape[1] == 1  # no counts


@pytest.mark.parametrize("n", [1000, 200_000])
@pytest.mark.parametrize("kind", ["balanced", "wide"])
def test_sums_are_those_of_the_rows(n, kind):
    """No field overflows into another: totals are the exact ones but for rounding."""
    _, negative, hessian, weight = draw(n, kind)
    packed, values = packed_of(negative, hessian, weight)
    np.testing.assert_array_equal(packed.totals[: values.shape[1]], values.sum(axis=0))
    gradient, curvature = sums_of(packed, values, np.zeros(n, dtype=int))
    scale = (weight * np.abs(negative[:, 0])).sum()
    assert gradient.sum() == pytest.approx((weight * negative[:, 0]).sum(), abs=1e-5 * scale)
    assert curvature.sum() == pytest.approx((weight * hessian[:, 0]).sum(), rel=1e-4)


@pytest.mark.parametrize(
    ("task", "fit_in_32_bits"), [("numbers", True), ("two classes", True), ("one outlier", False)]
)
def test_gradients_of_large_tables_in_32_bits_give_the_same_model(
    task, fit_in_32_bits, monkeypatch
):
    rng = np.random.default_rng(0)
    n, found = 2**18 + 100, []
    X = rng.integers(40, size=(n, 2)).astype(float)
    y = np.sin(X[:, 0]) * X[:, 1] + rng.normal(size=n)
    if task == "one outlier":
        y[7] = 1e9

    def noted(*arguments):
        found.append(pack(*arguments))
        return found[-1]

    def raw(fewest_rows):
        monkeypatch.setattr(packing, "_FEWEST_ROWS_COMPACT", fewest_rows)
        kind = BoostingClassifier if task == "two classes" else BoostingRegressor
        model = kind(n_estimators=3, early_stopping=False, random_state=0, n_jobs=2)
        return model.fit(X, y > 0 if task == "two classes" else y).model_.predict_raw(X)

    monkeypatch.setattr(fitting, "pack", noted)
    np.testing.assert_array_equal(raw(2**18), raw(2**40))
    assert [one.compact is not None for one in found] == [fit_in_32_bits] * 3 + [False] * 3


def test_steps_of_whole_weights_are_those_of_repeated_rows():
    mass = 400_000.0
    few, many = (packing.layout_of(True, True, mass, True, m) for m in (200_000, 400_000))
    assert few.packing.is_like(many.packing)
    assert few._replace(packing=many.packing) == many
    assert few.at_random


@pytest.mark.parametrize("m", [140_000, 2**18, 2**19, 2**20, 2**21 - 1])
def test_coarse_gradients_have_at_least_two_steps_of_the_mean(m):
    assert packing.layout_of(True, True, float(m), True, m).gradient_room > 1.99 * m


@pytest.mark.parametrize("of_probabilities", [False, True])
@pytest.mark.parametrize("m", [2**18, 2**19, 2**20])
def test_one_row_more_makes_steps_at_most_four_times_as_large(of_probabilities, m):
    few, many = (packing.layout_of(True, of_probabilities, float(n), True, n) for n in (m - 1, m))
    assert many.gradient_room >= few.gradient_room / 4
    assert many.hessian_room >= few.hessian_room / 4


@pytest.mark.parametrize("weights", ["none", "whole", "fractional"])
@pytest.mark.parametrize("mass", [140_000, 600_000, 3_000_000])
def test_only_probabilities_are_rounded_coarsely(weights, mass):
    m = mass // 2 if weights == "whole" else mass
    given = float(mass) + 0.5 * (weights == "fractional"), weights != "fractional", m
    layouts = [
        packing.layout_of(True, of_probabilities, *given) for of_probabilities in (False, True)
    ]
    coarse = [layout.gradient_room < 256 * mass for layout in layouts]
    assert coarse == [False, weights != "fractional" and mass < 2**21]
    assert all(layout.at_random for layout in layouts)


def test_rounding_errors_cancel_over_stages():
    rng, n, n_stages = np.random.default_rng(0), 140_000, 32
    negative = rng.uniform(-1, 1, size=(n, 1))
    hessian = np.abs(negative) * (1 - np.abs(negative))
    data, gradients = TreeData(None, ThreadTeam(), {}, seed=3), []
    for stage in range(n_stages):
        packed, values = packed_of(negative, hessian, np.empty(0), data.salt(0, stage))
        gradients.append(values[:, 0] >> packed.packing.gradient_shift)
    steps = negative[:, 0] / packed.packing.steps[0]
    error = np.mean(gradients, axis=0) - steps
    assert np.abs(error).max() < 1.001 / n_stages
    changes = np.diff(gradients, axis=0) != 0
    assert changes.mean() < 2.1 / n_stages

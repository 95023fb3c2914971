"""Losses of a distance: contract, start values and leaves against direct minimization."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.model.own_parts import PseudoHuber

from hilboost import BoostingRegressor
from hilboost.core.errors import IncompatibleParts, InvalidData
from hilboost.core.target import Target
from hilboost.losses import AbsoluteError, Huber, Quantile, SquaredError
from hilboost.losses.radial import RadialLoss
from hilboost.testing import LossContract

MAKE = {
    "absolute_error": AbsoluteError,
    "huber": lambda: Huber(0.7),
    "squared_error": SquaredError,
    "own": PseudoHuber,
}
seeds = st.integers(0, 2**31)
losses = pytest.mark.parametrize("name", MAKE)


class OfDistance(LossContract):
    saved = False
    # The parabola above the loss has a test of its own.
    test_hessian_is_the_derivative_of_the_gradient = None
    # One median of all columns differs from a step of some of them.
    test_leaf_values_of_some_columns_are_those_of_all = None

    def __init__(self, name):
        self.name = name
        self.best_leaves = name in ("absolute_error", "squared_error")

    def make(self):
        return RadialLoss(MAKE[self.name]())

    def build(self, **parameters):
        return super().build(**{"multi_output": "shared"} | parameters)

    def targets(self, rng, n):
        return rng.standard_t(2, size=(n, 3)) + 1


@losses
@pytest.mark.parametrize("check", OfDistance.checks())
def test_contract(name, check):
    getattr(OfDistance(name), check)()


def draw(seed, n=40, r=3, outside=False, weighted=True):
    rng = np.random.default_rng(seed)
    y = rng.standard_t(2, size=(n, r)) + 1
    if outside:
        y = np.column_stack([y, np.abs(rng.normal(size=n))])
    weight = rng.integers(1, 4, n).astype(float) if weighted else None
    return rng, Target(y, weight), rng.normal(size=(n, r))


def mean_value(loss, target, raw):
    return float(np.average(loss.value(target, raw), weights=target.weight))


@losses
@pytest.mark.parametrize("outside", [False, True])
def test_start_against_direct_minimization(name, outside):
    _, target, _ = draw(3, outside=outside)
    loss = RadialLoss(MAKE[name](), outside)
    start = loss.initial_raw(target)

    def at(constant):
        return mean_value(loss, target, np.tile(constant, (40, 1)))

    best = minimize(at, start + 0.1, method="Nelder-Mead", options={"maxiter": 2000})
    assert at(start) <= best.fun + 1e-12


@pytest.mark.parametrize("loss", [AbsoluteError(), Huber(), Huber(0.5)])
@given(seed=seeds)
def test_one_output_is_the_loss_itself(loss, seed):
    _, target, raw = draw(seed, r=1)
    radial = RadialLoss(loss)
    np.testing.assert_array_equal(radial.initial_raw(target), loss.initial_raw(target))
    now, plain = radial.adapted(target, raw), loss
    if isinstance(loss, Huber):
        plain = loss.adapted(target, raw)
    close = {"rtol": 1e-12, "atol": 1e-13}
    np.testing.assert_allclose(now.value(target, raw), plain.value(target, raw), **close)
    for ours, theirs in (
        (now, plain),
        (now.with_curvature(target, raw), plain.with_curvature(target, raw)),
    ):
        found, expected = ours.gradients(target, raw), theirs.gradients(target, raw)
        np.testing.assert_allclose(found.negative_gradient, expected.negative_gradient, **close)
        if expected.hessian is not None:
            np.testing.assert_allclose(found.hessian, expected.hessian, **close)
    leaves = (np.arange(40) % 4).astype(np.int32)
    arguments = target, raw, leaves, 4, slice(0, 1)
    np.testing.assert_array_equal(now.leaf_values(*arguments), plain.leaf_values(*arguments))


@losses
@given(seed=seeds)
def test_a_constant_column_changes_nothing(name, seed):
    """Of the targets: it has neither residuals nor leaf values."""
    _, target, raw = draw(seed)
    wider = Target(np.column_stack([target.y, np.full(40, 5.0)]), target.weight)
    loss, leaves = RadialLoss(MAKE[name]()), (np.arange(40) % 5).astype(np.int32)
    close = {"rtol": 1e-7, "atol": 1e-7}
    start = loss.initial_raw(wider)
    np.testing.assert_allclose(start, [*loss.initial_raw(target), 5.0], **close)
    values = loss.leaf_values(target, raw, leaves, 5, slice(0, 3))
    more = loss.leaf_values(wider, np.column_stack([raw, np.full(40, 5.0)]), leaves, 5, slice(0, 4))
    np.testing.assert_allclose(more, np.column_stack([values, np.zeros(5)]), **close)


@losses
@given(seed=seeds)
def test_what_is_outside_is_one_more_coordinate(name, seed):
    _, target, raw = draw(seed, outside=True)
    loss, plain = RadialLoss(MAKE[name](), outside=True), RadialLoss(MAKE[name]())
    flat = np.column_stack([raw, np.zeros(40)])
    np.testing.assert_allclose(loss.value(target, raw), plain.value(target, flat), rtol=1e-12)
    np.testing.assert_allclose(
        loss.gradients(target, raw).negative_gradient,
        plain.gradients(target, flat).negative_gradient[:, :-1],
        rtol=1e-12,
        atol=1e-14,
    )


@losses
@given(seed=seeds)
def test_rotations_carry_over(name, seed):
    rng, target, raw = draw(seed)
    rotation, shift = np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.normal(size=3)
    turned = Target(target.y @ rotation + shift, target.weight)
    loss, leaves = RadialLoss(MAKE[name]()), (np.arange(40) % 5).astype(np.int32)
    close = {"rtol": 1e-6, "atol": 1e-6}
    start = loss.initial_raw(target)
    np.testing.assert_allclose(loss.initial_raw(turned), start @ rotation + shift, **close)
    moved = raw @ rotation + shift
    np.testing.assert_allclose(
        loss.gradients(turned, moved).negative_gradient,
        loss.gradients(target, raw).negative_gradient @ rotation,
        **close,
    )
    values = [
        loss.leaf_values(target, raw, leaves, 5, slice(0, 3)) @ rotation,
        loss.leaf_values(turned, moved, leaves, 5, slice(0, 3)),
    ]
    np.testing.assert_allclose(*values, **close)


@losses
@given(seed=seeds, size=st.sampled_from([1e-6, 0.01, 1.0, 100.0]))
def test_the_parabola_lies_above_the_loss(name, seed, size):
    rng, target, raw = draw(seed)
    curved = RadialLoss(MAKE[name]()).with_curvature(target, raw)
    now, step = curved.gradients(target, raw), size * rng.normal(size=raw.shape)
    assert now.structure.isotropic
    assert (now.hessian == now.hessian[:, :1]).all()
    parabola = (-now.negative_gradient * step + 0.5 * now.hessian * step**2).sum(axis=1)
    rise = curved.value(target, raw + step) - curved.value(target, raw)
    slack = curved.width if name == "absolute_error" else 1e-12
    assert (rise <= parabola + slack + 1e-9 * (1 + np.abs(parabola))).all()


@losses
@given(seed=seeds, outside=st.booleans())
def test_leaves_never_raise_the_loss(name, seed, outside):
    rng, target, raw = draw(seed, outside=outside)
    loss, leaves = RadialLoss(MAKE[name](), outside), rng.integers(-1, 5, 40).astype(np.int32)
    columns = slice(0, 3)
    values = loss.leaf_values(target, raw, leaves, 5, columns)
    inside = leaves >= 0
    moved = raw + np.where(inside[:, None], values[leaves], 0.0)
    assert mean_value(loss, target, moved) <= mean_value(loss, target, raw) + 1e-12
    # Trees of one output each, added together.
    for k in range(3):
        own = rng.integers(0, 5, 40).astype(np.int32)
        moved[:, k] = raw[:, k] + loss.leaf_values(target, raw, own, 5, slice(k, k + 1))[own, 0]
    least = 1e-4 * mean_value(loss, target, raw) if name == "absolute_error" else 1e-12
    assert mean_value(loss, target, moved) <= mean_value(loss, target, raw) + least


def test_delta_is_a_quantile_of_the_distances():
    _, target, raw = draw(0, weighted=False)
    now = RadialLoss(Huber(alpha=0.75)).adapted(target, raw)
    distance = np.sqrt(((target.y - raw) ** 2).sum(axis=1))
    assert (distance <= now.loss.delta).mean() == pytest.approx(0.75)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_units_of_the_target_do_not_matter(size):
    rng, target, _ = draw(0)
    X = rng.normal(size=(40, 2))

    def fitted(y):
        model = BoostingRegressor(
            RadialLoss(AbsoluteError()),
            multi_output="shared",
            n_estimators=5,
            min_samples_leaf=2,
            early_stopping=False,
            random_state=0,
        )
        return model.fit(X, y).predict(X)

    np.testing.assert_allclose(fitted(target.y * size) / size, fitted(target.y), rtol=1e-6)


def test_targets_whose_loss_overflows_are_refused():
    with pytest.raises(InvalidData, match="Huber exceeds the range of float64"):
        RadialLoss(Huber()).units(Target(np.full((3, 2), 1e200)))


class Falling(AbsoluteError):
    symmetric = True

    def gradients(self, target, raw):
        now = super().gradients(target, raw)
        return type(now)(-now.negative_gradient)


def test_a_loss_that_falls_with_the_distance_is_refused():
    _, target, raw = draw(0)
    with pytest.raises(IncompatibleParts, match="Falling does not rise with the distance.*give a"):
        RadialLoss(Falling()).gradients(target, raw)


def test_symmetry_is_declared():
    assert AbsoluteError.symmetric
    assert Huber.symmetric
    assert not Quantile.symmetric
    assert not type("Derived", (AbsoluteError,), {}).symmetric

"""What every built-in loss promises."""

import numpy as np
import pytest
from tests.cases import LOSSES, ids

import hilboost.losses
from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.core.loss import AdaptiveLoss, LeafLoss, Loss, Target
from hilboost.estimators.predictions import CLASS_LOSSES, NUMBER_LOSSES

N = 40
STEP = 1e-5
KINK = 1e-3
all_losses = pytest.mark.parametrize("case", LOSSES, ids=ids(LOSSES))
weighted_or_not = pytest.mark.parametrize("weighted", [False, True])


def generator(case):
    return np.random.default_rng(len(case.id) + case.n_outputs)


def draw(case, weighted=False):
    """Loss, target and a ``raw`` that is far from every kink."""
    rng = generator(case)
    loss, target = case.make(), case.target(rng, N, weighted)
    raw = loss.initial_raw(target) + rng.normal(size=(N, case.n_outputs)) * 0.7
    if not case.smooth:
        residual = target.y - raw
        raw = np.where(np.abs(residual) < KINK, raw + 3 * KINK, raw)
    if hasattr(loss, "delta"):
        near = np.abs(np.abs(target.y - raw) - loss.delta) < KINK
        raw = np.where(near, raw + 3 * KINK, raw)
    return loss, target, raw


def moved(raw, column, step):
    result = raw.copy()
    result[:, column] += step
    return result


def mean_value(loss, target, constant):
    raw = np.broadcast_to(constant, (len(target.y), len(constant)))
    return np.average(loss.value(target, raw), weights=target.weight)


def test_every_public_loss_has_a_row():
    public = {
        value
        for name in hilboost.losses.__all__
        if issubclass(value := getattr(hilboost.losses, name), Loss)
    } - {Loss, AdaptiveLoss, LeafLoss}
    assert public == {type(case.make()) for case in LOSSES}


@pytest.mark.parametrize(
    ("estimator", "names"), [(BoostingClassifier, CLASS_LOSSES), (BoostingRegressor, NUMBER_LOSSES)]
)
def test_every_loss_name_of_an_estimator_has_a_row(estimator, names):
    assert set(names) == {c.name for c in LOSSES if c.estimator is estimator}


@all_losses
def test_shapes(case):
    loss, target, raw = draw(case)
    gradients = loss.gradients(target, raw)
    assert loss.initial_raw(target).shape == (case.n_outputs,)
    assert loss.value(target, raw).shape == (N,)
    assert gradients.negative_gradient.shape == raw.shape
    assert gradients.hessian is None or gradients.hessian.shape == raw.shape
    assert (gradients.hessian is None) == (case.hessian == "ones" or case.name == "squared_error")


@all_losses
@pytest.mark.parametrize("order", ["C", "F"])
def test_inputs_are_not_changed(case, order):
    loss, target, raw = draw(case, weighted=True)
    raw = np.asarray(raw, order=order)
    copies = raw.copy(), target.y.copy(), target.weight.copy()
    for array in (raw, target.y, target.weight):
        array.flags.writeable = False
    loss.initial_raw(target)
    loss.value(target, raw)
    loss.gradients(target, raw)
    loss.inverse_link(raw)
    for array, copied in zip((raw, target.y, target.weight), copies, strict=True):
        np.testing.assert_array_equal(array, copied)


@all_losses
def test_gradient_is_the_derivative_of_the_value(case):
    loss, target, raw = draw(case)
    negative = loss.gradients(target, raw).negative_gradient
    for k in range(case.n_outputs):
        up, down = (loss.value(target, moved(raw, k, s)) for s in (STEP, -STEP))
        np.testing.assert_allclose(negative[:, k], (down - up) / (2 * STEP), rtol=1e-6, atol=1e-7)


@all_losses
def test_hessian_is_the_derivative_of_the_gradient(case):
    loss, target, raw = draw(case)
    hessian = loss.gradients(target, raw).hessian
    hessian = np.ones_like(raw) if hessian is None else hessian
    for k in range(case.n_outputs):
        up, down = (
            loss.gradients(target, moved(raw, k, s)).negative_gradient[:, k] for s in (STEP, -STEP)
        )
        second = (down - up) / (2 * STEP)
        if case.hessian == "ones":  # a bound
            assert (second <= 1 + 1e-6).all()
        else:
            np.testing.assert_allclose(hessian[:, k], case.hessian * second, rtol=1e-6, atol=1e-7)


@all_losses
@weighted_or_not
def test_start_minimises_the_mean_value(case, weighted):
    rng = generator(case)
    loss, target = case.make(), case.target(rng, N, weighted)
    start = loss.initial_raw(target)
    lowest = mean_value(loss, target, start)
    for size in (1e-4, 1e-2, 1):
        for direction in [*np.eye(case.n_outputs), *rng.normal(size=(5, case.n_outputs))]:
            for sign in (-1, 1):
                shifted = mean_value(loss, target, start + sign * size * direction)
                assert shifted >= lowest - 1e-12 * abs(lowest)


@all_losses
def test_weights_repeat_rows_for_the_start(case):
    rng = generator(case)
    loss, target = case.make(), case.target(rng, N)
    weight = rng.integers(1, 4, size=N)
    repeated = Target(np.repeat(target.y, weight, axis=0))
    np.testing.assert_allclose(
        loss.initial_raw(Target(target.y, weight.astype(float))),
        loss.initial_raw(repeated),
        rtol=1e-10,
        atol=1e-12,
    )


@all_losses
def test_a_row_depends_on_itself_alone(case):
    loss, target, raw = draw(case)
    half = slice(7, 20)
    np.testing.assert_array_equal(
        loss.value(target, raw)[half], loss.value(target.rows(half), raw[half])
    )
    whole, part = loss.gradients(target, raw), loss.gradients(target.rows(half), raw[half])
    np.testing.assert_array_equal(whole.negative_gradient[half], part.negative_gradient)
    if whole.hessian is not None:
        np.testing.assert_array_equal(whole.hessian[half], part.hessian)


@all_losses
def test_inverse_link_stays_in_its_range(case):
    loss, _, raw = draw(case)
    for scale in (1, 30, 1e4):
        result = loss.inverse_link(raw * scale)
        assert np.isfinite(result).all()
        if case.estimator is BoostingClassifier:
            assert result.shape == (N, max(2, case.n_outputs))
            assert ((result >= 0) & (result <= 1)).all()
            np.testing.assert_allclose(result.sum(axis=1), 1, rtol=1e-12)
        elif case.name in ("poisson", "gamma", "tweedie"):
            assert (result > 0).all()
        else:
            np.testing.assert_array_equal(np.sort(result, axis=1), np.sort(raw * scale, axis=1))


@all_losses
def test_far_away_nothing_overflows(case):
    loss, target, raw = draw(case)
    for far in (raw + 1e4, raw - 1e4, 1e3 * raw):
        gradients = loss.gradients(target, far)
        assert np.isfinite(loss.value(target, far)).all()
        assert np.isfinite(gradients.negative_gradient).all()
        assert gradients.hessian is None or np.isfinite(gradients.hessian).all()


CELL_LOSSES = [case for case in LOSSES if isinstance(case.make(), LeafLoss)]


@pytest.mark.parametrize("case", CELL_LOSSES, ids=ids(CELL_LOSSES))
@weighted_or_not
def test_cell_values_are_best_constants_of_each_cell(case, weighted):
    loss, target, raw = draw(case, weighted)
    raw = raw - 3  # so that every leaf has a way to go
    leaves = np.random.default_rng(0).integers(-1, 4, size=N).astype(np.int32)
    leaves[leaves == 2] = 3  # leaf 2 is empty
    values = loss.leaf_values(target, raw, leaves, 5, slice(0, case.n_outputs))
    assert values.shape == (5, case.n_outputs)
    np.testing.assert_array_equal(values[[2, 4]], 0)
    for leaf in (0, 1, 3):
        rows = np.flatnonzero(leaves == leaf)
        here, raw_here = target.rows(rows), raw[rows]

        def cell_mean(constant, here=here, raw_here=raw_here):
            return np.average(loss.value(here, raw_here + constant), weights=here.weight)

        before, lowest = cell_mean(np.zeros(case.n_outputs)), cell_mean(values[leaf])
        assert lowest < before
        if case.name != "huber":  # which takes one step from the median
            for k in range(case.n_outputs):
                for shift in (-0.1, -1e-3, 1e-3, 0.1):
                    near = values[leaf] + shift * np.eye(case.n_outputs)[k]
                    assert cell_mean(near) >= lowest - 1e-12


@pytest.mark.parametrize("case", CELL_LOSSES, ids=ids(CELL_LOSSES))
def test_cell_values_of_some_columns_are_those_of_all(case):
    loss, target, raw = draw(case)
    leaves = np.random.default_rng(0).integers(0, 3, size=N).astype(np.int32)
    whole = loss.leaf_values(target, raw, leaves, 3, slice(0, case.n_outputs))
    for k in range(case.n_outputs):
        part = loss.leaf_values(target, raw, leaves, 3, slice(k, k + 1))
        np.testing.assert_array_equal(part, whole[:, k : k + 1])

"""Discrete hazards: derivatives, and the estimates of Kaplan, Meier, Aalen and Johansen."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.target import Target
from hilboost.losses import AFT, Cox, DiscreteHazard
from hilboost.model.survival import SurvivalCurves

ENDS = np.array([1.0, 2.5, 4.0])


def draw(n_causes=1, n=60, seed=0, grid=None, weighted=False):
    """Times between 0 and 5, on a grid if one is given, and the causes of the events."""
    rng = np.random.default_rng(seed)
    time = rng.uniform(0, 5, size=n) if grid is None else rng.choice(grid, size=n)
    cause = rng.integers(n_causes + 1, size=n).astype(float)
    upper, zero = np.where(cause > 0, time, np.inf), np.zeros(n)
    columns = [time, upper, zero, zero] + [cause] * (n_causes > 1)
    weight = rng.integers(1, 4, size=n).astype(float) if weighted else None
    return Target(np.column_stack(columns), weight), time, cause


@pytest.mark.parametrize("n_causes", [1, 3])
def test_derivatives(n_causes):
    target, *_ = draw(n_causes, n=15)
    loss = DiscreteHazard(ENDS, n_causes)
    raw = np.random.default_rng(1).normal(size=(15, 3 * n_causes))
    found = loss.gradients(target, raw)

    def total(flat):
        return loss.value(target, flat.reshape(raw.shape)).sum()

    def slope(flat):
        return -loss.gradients(target, flat.reshape(raw.shape)).negative_gradient.ravel()

    expected = approx_fprime(raw.ravel(), total, 1e-6)
    np.testing.assert_allclose(-found.negative_gradient.ravel(), expected, atol=1e-5)
    curvature = np.diag(approx_fprime(raw.ravel(), slope, 1e-6))
    curvature, hazards = curvature.reshape(raw.shape), loss.hazards(raw)
    assert (found.hessian >= curvature - 1e-5).all()
    mild = ((hazards > 0.1) & (hazards < 0.9)).all(axis=(1, 2))  # where no step is too long
    assert mild.sum() >= 3
    np.testing.assert_allclose(found.hessian[mild], curvature[mild], atol=1e-5)


def test_rows_count_where_they_are_at_risk():
    loss = DiscreteHazard(ENDS)
    rows = np.array([[0.0, 0.0], [1.0, 1.0], [2.5, np.inf], [3.25, np.inf], [9.0, 9.0]])
    target = Target(np.column_stack([rows, np.zeros((5, 2))]))
    at_risk, event = loss._observed(target)
    np.testing.assert_allclose(at_risk, [[1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 0.5], [1, 1, 1]])
    np.testing.assert_array_equal(event, [[1, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_causes", [1, 2])
def test_constants_are_the_aalen_johansen_estimate(n_causes, weighted):
    """With one cause, one minus that of Kaplan and Meier."""
    grid = np.array([0.5, 1.0, 2.0, 3.5])
    target, time, cause = draw(n_causes, grid=grid, weighted=weighted)
    weight = np.ones(60) if target.weight is None else target.weight
    alive, incidence, expected = 1.0, np.zeros(n_causes), []
    for t in grid:
        risk = weight[time >= t].sum()
        hazards = [weight[(time == t) & (cause == k + 1)].sum() / risk for k in range(n_causes)]
        incidence = incidence + alive * np.array(hazards)
        alive *= 1 - sum(hazards)
        expected.append(incidence)
    loss = DiscreteHazard(grid, n_causes)
    curves = SurvivalCurves(grid, discrete=loss)
    raw = loss.initial_raw(target)[None]
    np.testing.assert_allclose(
        curves.cumulative_incidence(raw, grid)[0].T, expected, rtol=1e-9, atol=1e-5
    )
    hazard = curves.cumulative_hazard(raw, np.zeros(1), grid[:-1])
    np.testing.assert_allclose(np.exp(-hazard[0]), 1 - np.sum(expected[:-1], axis=1), rtol=1e-9)


def test_incidences_and_survival_add_up_to_one_at_any_time():
    loss = DiscreteHazard(ENDS, 2)
    curves = SurvivalCurves(ENDS, discrete=loss)
    raw = np.random.default_rng(0).normal(size=(7, 6))
    times = np.array([0.0, 0.3, 1.0, 1.7, 2.5, 3.9, 4.0, 50.0])
    incidence = curves.cumulative_incidence(raw, times)
    survival = np.exp(-curves.cumulative_hazard(raw, np.zeros(7), times))
    np.testing.assert_allclose(incidence.sum(axis=1) + survival, 1, rtol=1e-12)
    assert (np.diff(incidence, axis=2) >= -1e-15).all()
    np.testing.assert_array_equal(incidence[..., 0], 0)
    np.testing.assert_array_equal(incidence[..., -1], incidence[..., -2])


@pytest.mark.parametrize("ends", [[], [0.0, 1.0], [2.0, 1.0], [[1.0]]])
def test_bad_ends(ends):
    with pytest.raises(InvalidParameter, match="positive numbers in ascending order"):
        DiscreteHazard(ends)


def test_bad_targets():
    target, *_ = draw(2)
    for loss in (Cox(), AFT(), DiscreteHazard(ENDS)):
        with pytest.raises(InvalidData, match="several causes require loss='discrete_hazard'"):
            loss.check(target)
    y = draw()[0].y
    for column in (2, 3):
        moved = y.copy()
        moved[:, column] = 1
        with pytest.raises(InvalidData, match="does not support entry times and strata"):
            DiscreteHazard(ENDS).check(Target(moved))
    with pytest.raises(InvalidData, match="no event"):
        DiscreteHazard(ENDS).check(Target(np.column_stack([y[:, 0], y[:, 1] + np.inf, y[:, 2:]])))
    with pytest.raises(InvalidData, match="loss='discrete_hazard' supports exact"):
        DiscreteHazard(ENDS).check(Target(np.array([[1.0, 2.0, 0, 0], [1.0, 1.0, 0, 0]])))

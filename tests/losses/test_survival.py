"""Losses of survival times: by their definitions, by scikit-survival, and by XGBoost's formulas."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import approx_fprime, minimize, minimize_scalar
from tests.refusals import refused

from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.target import Target
from hilboost.losses import AFT, Cox

NOISE = {"normal": stats.norm, "logistic": stats.logistic, "extreme": stats.gumbel_l}
ROWS = np.random.default_rng(0).normal(size=(40, 1))


def right_censored(seed, n=40, late=False, strata=1, weighted=False, levels=12):
    rng = np.random.default_rng(seed)
    lower = rng.integers(1, levels, size=n).astype(float)
    upper = np.where(rng.uniform(size=n) < 0.6, lower, np.inf)
    entry = np.floor(rng.uniform(0, 1, size=n) * lower) if late else np.zeros(n)
    stratum = rng.integers(strata, size=n).astype(float)
    weight = rng.integers(0, 4, size=n).astype(float) if weighted else None
    return Target(np.column_stack([lower, upper, entry, stratum]), weight)


def partial_likelihood(target, raw, ties="breslow"):
    """Negative logarithm, by the definition."""
    lower, upper, entry, stratum = target.y.T
    weight = np.ones(len(lower)) if target.weight is None else target.weight
    power, total = weight * np.exp(raw), 0.0
    event = (lower == upper) & (weight > 0)
    for s in np.unique(stratum):
        for t in np.unique(lower[event & (stratum == s)]):
            risk = power[(stratum == s) & (lower >= t) & (entry < t)].sum()
            own = event & (stratum == s) & (lower == t)
            m = own.sum()
            if ties == "breslow":
                total += weight[own].sum() * np.log(risk) - weight[own] @ raw[own]
                continue
            left = [np.log(risk - l / m * power[own].sum()) for l in range(m)]  # noqa: E741
            total += weight[own].sum() / m * sum(left) - weight[own] @ raw[own]
    return total


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("strata", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_cox(ties, late, strata, weighted):
    target = right_censored(1, late=late, strata=strata, weighted=weighted)
    weight = np.ones(40) if target.weight is None else target.weight
    loss, raw = Cox(ties), ROWS[:, 0]
    expected = partial_likelihood(target, raw, ties)
    assert weight @ loss.value(target, ROWS) == pytest.approx(expected, rel=1e-12)
    found = loss.gradients(target, ROWS)
    slope = approx_fprime(raw, lambda f: partial_likelihood(target, f, ties), 1e-6)
    np.testing.assert_allclose(weight * found.negative_gradient[:, 0], -slope, atol=2e-5)
    assert (weight @ found.negative_gradient)[0] == pytest.approx(0, abs=1e-12)
    # The hessian bounds the second derivative of each row.
    for row in range(40):
        step = 1e-3 * (np.arange(40) == row)
        bend = sum(partial_likelihood(target, raw + k * step, ties) for k in (-1, 1))
        assert (bend - 2 * expected) / 1e-6 <= weight[row] * found.hessian[row, 0] + 1e-6


def test_gradients_of_scikit_survival():
    coxph = pytest.importorskip("sksurv.ensemble._coxph_loss")
    target = right_censored(2, levels=9)
    event = np.isfinite(target.y[:, 1])
    theirs = coxph.coxph_negative_gradient(event.astype(np.uint8), target.y[:, 0], ROWS[:, 0])
    ours = Cox().gradients(target, ROWS).negative_gradient[:, 0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    value = coxph.coxph_loss(event.astype(np.uint8), target.y[:, 0], ROWS[:, 0])
    assert Cox().value(target, ROWS).sum() == pytest.approx(value, rel=1e-12)


def test_large_predictions():
    target = right_censored(3)
    assert np.isfinite(Cox().gradients(target, 1e4 * ROWS).negative_gradient).all()
    assert np.isfinite(Cox().value(target, 1e4 * ROWS)).all()


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_rows_of_zero_weight_with_the_largest_predictions(ties):
    target = right_censored(0)
    target = Target(target.y, (np.arange(40) % 4 > 0).astype(float))
    raw = np.where(target.weight[:, None] > 0, -400 * ROWS**2, 900.0)
    for found in Cox(ties).gradients(target, raw).negative_gradient, Cox(ties).value(target, raw):
        assert np.isfinite(found).all()


def test_order_and_repetition_change_no_bit():
    target = right_censored(4, late=True, strata=2, weighted=True)
    found = Cox().gradients(target, ROWS)
    order = np.random.default_rng(5).permutation(40)
    moved = Cox().gradients(target.rows(order), ROWS[order])
    np.testing.assert_array_equal(moved.negative_gradient, found.negative_gradient[order])
    times = target.weight.astype(int)
    repeated = Cox().gradients(Target(np.repeat(target.y, times, 0)), np.repeat(ROWS, times, 0))
    np.testing.assert_array_equal(
        repeated.negative_gradient, np.repeat(found.negative_gradient, times, 0)
    )


def bounds(kind, n=40):
    rng = np.random.default_rng(6)
    time, width = rng.uniform(0.5, 1.2, size=n), rng.uniform(0.1, 0.6, size=n)
    return {
        "exact": (time, time),
        "right": (time, np.full(n, np.inf)),
        "left": (np.zeros(n), time),
        "interval": (time, time + width),
    }[kind]


@pytest.mark.parametrize("distribution", NOISE)
@pytest.mark.parametrize("kind", ["exact", "right", "left", "interval"])
@pytest.mark.parametrize("scale", [0.4, 1.7])
def test_aft(distribution, kind, scale):
    lower, upper = bounds(kind)
    target = Target(np.column_stack([lower, upper, 0 * lower, 0 * lower]))
    noise, raw = NOISE[distribution], 0.2 * ROWS

    def likelihood(f):
        with np.errstate(divide="ignore"):
            low, high = (np.log(lower) + f) / scale, (np.log(upper) + f) / scale
        if kind == "exact":
            return -np.log(noise.pdf(low) / (scale * lower))
        return -np.log(noise.sf(low) - noise.sf(high))

    loss = AFT(distribution, scale)
    np.testing.assert_allclose(loss.value(target, raw), likelihood(raw[:, 0]), rtol=1e-9)
    found, step = loss.gradients(target, raw), 1e-4
    rise, fall = loss.value(target, raw + step), loss.value(target, raw - step)
    slope = np.clip((fall - rise) / (2 * step), -15 / scale, 15 / scale)
    np.testing.assert_allclose(found.negative_gradient[:, 0], slope, rtol=1e-5, atol=1e-6)
    step = 1e-3
    rise, fall = loss.value(target, raw + step), loss.value(target, raw - step)
    bend = np.clip((rise + fall - 2 * loss.value(target, raw)) / step**2, 1e-6, 15 / scale**2)
    bend = np.maximum(bend, np.abs(found.negative_gradient[:, 0]) / scale / 10)  # shorter steps
    np.testing.assert_allclose(found.hessian[:, 0], bend, rtol=1e-4, atol=1e-6)


def test_aft_estimates_start_and_scale():
    rng = np.random.default_rng(7)
    time = np.exp(1.5 + 0.3 * rng.normal(size=4000))
    end = np.exp(1.5 + rng.normal(size=4000))
    lower, upper = np.minimum(time, end), np.where(time <= end, time, np.inf)
    target = Target(np.column_stack([lower, upper, 0 * lower, 0 * lower]))
    raw = np.full((4000, 1), AFT().initial_raw(target)[0])
    assert raw[0, 0] == pytest.approx(-1.5, abs=0.03)
    assert AFT().adapted(target, raw).scale == pytest.approx(0.3, abs=0.02)
    assert AFT(scale=2.0).adapted(target, raw).scale == 2.0
    shift, scale = AFT().located(target, raw - 0.5)
    assert (shift, scale) == (pytest.approx(0.5, abs=0.01), pytest.approx(0.3, abs=0.02))


@pytest.mark.parametrize("scale", [None, 2.0])
@pytest.mark.parametrize("n_events", [1, 20, 300])
@pytest.mark.parametrize("distribution", NOISE)
def test_start_and_scale_maximize_the_likelihood_of_rare_events(distribution, n_events, scale):
    rng = np.random.default_rng(n_events)
    lower, raw = np.exp(rng.normal(size=400)), rng.normal(size=(400, 1))
    upper = np.where(np.arange(400) < n_events, lower, np.inf)
    weight = rng.integers(1, 3, size=400).astype(float)
    target = Target(np.column_stack([lower, upper, 0 * lower, 0 * lower]), weight)

    def total(place):
        loss = AFT(distribution, scale or np.exp(np.clip(place[1], *np.log([0.01, 100]))))
        return weight @ loss.value(target, raw + place[0])

    shift, found = AFT(distribution, scale).located(target, raw)
    starts = [(shift, np.log(found)), (-3.0, 1.0), (-10.0, 2.0)]
    options = {"maxfev": 2000, "xatol": 1e-6, "fatol": 1e-8}
    rivals = [minimize(total, one, method="Nelder-Mead", options=options).fun for one in starts]
    assert total((shift, np.log(found))) < min(rivals) + 1e-4 * n_events
    assert scale in (None, found)


@pytest.mark.parametrize("distribution", NOISE)
def test_the_scale_maximizes_the_likelihood(distribution):
    rng = np.random.default_rng(8)
    parts = [np.column_stack(bounds(kind)) for kind in ("exact", "right", "left", "interval")]
    y = np.column_stack([np.concatenate(parts), np.zeros((160, 2))])
    raw, times = rng.normal(size=(160, 1)), rng.integers(1, 4, size=160)
    for rows in (np.arange(40), np.arange(80), np.arange(160), np.arange(40, 160)):
        target = Target(y[rows], times[rows].astype(float))

        def total(logarithm, target=target, rows=rows):
            return target.weight @ AFT(distribution, np.exp(logarithm)).value(target, raw[rows])

        scale = AFT(distribution).adapted(target, raw[rows]).scale
        best = minimize_scalar(total, bounds=np.log([0.01, 100]), method="bounded")
        assert np.log(scale) == pytest.approx(best.x, abs=0.02)
        repeated = np.repeat(rows, times[rows])[::-1]
        assert AFT(distribution).adapted(Target(y[repeated]), raw[repeated]).scale == scale


def test_aft_far_away():
    for distribution in NOISE:
        for kind in ("exact", "right", "left", "interval"):
            lower, upper = bounds(kind)
            target = Target(np.column_stack([lower, upper, 0 * lower, 0 * lower]))
            for f in (-300.0, -30.0, 30.0, 300.0):
                found = AFT(distribution, 0.1).gradients(target, np.full((40, 1), f))
                assert np.isfinite(found.negative_gradient).all(), (distribution, kind, f)
                assert np.isfinite(found.hessian).all(), (distribution, kind, f)


def test_refusals():
    plain = right_censored(8)
    refused(InvalidParameter, "'breslow' or 'efron'", Cox, "exact")
    refused(InvalidParameter, "distribution='cauchy' is not known", AFT, "cauchy")
    for loss in (Cox(), AFT()):
        refused(InvalidData, "use BoostingSurvival", loss.check, Target(plain.y[:, :1]))
        none = plain.y.copy()
        none[:, 1] = np.inf
        refused(InvalidData, "contains no event", loss.check, Target(none))
    other = plain.y.copy()
    other[0, 1] = other[0, 0] + 1
    refused(InvalidData, "exact and right-censored", Cox().check, Target(other))
    other[0, :2] = 0
    refused(InvalidData, "time 0", AFT().check, Target(other))
    other[0, :2], other[0, 3] = 1, 1
    refused(InvalidData, "entry times and strata", AFT().check, Target(other))


def test_the_scale_of_intervals_that_contain_the_prediction_is_found():
    ends = np.exp(np.tile([-0.3, 0.3], (100, 1)))
    target = Target(np.c_[ends, np.zeros((100, 2))])
    assert np.isfinite(AFT("normal").adapted(target, np.zeros((100, 1))).scale)

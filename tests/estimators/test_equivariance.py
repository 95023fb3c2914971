"""What units do: those of the target, of the weights and of the columns."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, Ridge
from tests.cases import LOSSES, PLAIN, LossCase, ids

from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.core.errors import DataWarning, InvalidData
from hilboost.core.target import Target
from hilboost.losses import Huber, Poisson

FEW = settings(max_examples=4)
seeds = st.integers(0, 10**6)
LEARNERS = [{}, {"multi_output": "shared"}, {"learner": Ridge(alpha=1.0)}]
AUTOMATIC = {"n_estimators": 6, "random_state": 0}
SETTINGS = [AUTOMATIC, PLAIN | {"n_estimators": 6}]
LOCATION = [case for case in LOSSES if case.id.startswith(("squared_error", "absolute", "huber"))]
LOCATION = [case for case in LOCATION if case.estimator is BoostingRegressor]
LOCATION += [case for case in LOSSES if case.id.startswith("quantile")]
SMOOTH = [case for case in LOCATION if case.id.startswith(("squared_error", "huber"))]


def _two(draw):
    return lambda rng, n: np.hstack([draw(rng, n), draw(rng, n)])


LOGARITHMIC = [case for case in LOSSES if case.id in ("poisson", "gamma", "tweedie")]
LOGARITHMIC += [
    LossCase(f"{case.id}-2", case.name, case.make, _two(case.draw), n_outputs=2)
    for case in LOGARITHMIC
]

any_learner = st.sampled_from(LEARNERS)
either_setting = st.sampled_from(SETTINGS)


def draw(case, seed, learner, n=None):
    """Rows on which y depends; without missing values, which not every learner takes."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 60)) if n is None else n
    y = case.target(rng, n).y
    X = rng.normal(size=(n, 3))
    X[:, 0] += y[:, 0]
    if "learner" not in learner:
        X[rng.uniform(size=(n, 3)) < 0.05] = np.nan
    return rng, X, case.labels(y)


def raw_of(model, X):
    return model.model_.predict_raw(np.ascontiguousarray(X))


# Units of the target


@pytest.mark.parametrize("case", LOCATION, ids=ids(LOCATION))
@FEW
@given(learner=any_learner, seed=seeds, power=st.integers(-490, 490), parameters=either_setting)
def test_a_target_times_a_power_of_two(case, learner, parameters, seed, power):
    _, X, y = draw(case, seed, learner)
    model = case.build(**parameters | learner)
    expected = model.fit(X, y).predict(X)
    scaled = model.fit(X, np.ldexp(y, power)).predict(X)
    np.testing.assert_array_equal(scaled, np.ldexp(expected, power))


@pytest.mark.parametrize("case", LOCATION, ids=ids(LOCATION))
def test_held_out_rows_of_extreme_targets(case):
    """Early stopping, folds and draws; mean losses are squares, of several targets in own units."""
    _, X, y = draw(case, 0, {}, n=260)
    model = case.build(n_estimators=8, random_state=0, early_stopping=True)
    expected, losses = model.fit(X, y).predict(X), model.history_.validation
    degree = 1 if "quantile" in case.id or "absolute" in case.id else 2
    degree = 0 if case.id.endswith("-2") else degree
    for power in (-490, 257):
        scaled = model.fit(X, np.ldexp(y, power)).predict(X)
        np.testing.assert_array_equal(scaled, np.ldexp(expected, power))
        found = model.history_.validation
        np.testing.assert_allclose(found, np.ldexp(losses, degree * power), rtol=1e-9)


@FEW
@given(learner=any_learner, seed=seeds, power=st.integers(-490, 490))
def test_a_fixed_delta_is_in_units_of_the_target(learner, seed, power):
    case = next(case for case in LOSSES if case.id == "huber")
    _, X, y = draw(case, seed, learner)
    expected = BoostingRegressor(Huber(0.5), **PLAIN | learner).fit(X, y).predict(X)
    model = BoostingRegressor(Huber(0.5 * 2.0**power), **PLAIN | learner)
    scaled = model.fit(X, np.ldexp(y, power)).predict(X)
    np.testing.assert_array_equal(scaled, np.ldexp(expected, power))
    assert model.loss_.delta == 0.5 * 2.0**power


@pytest.mark.parametrize("case", LOGARITHMIC, ids=ids(LOGARITHMIC))
@FEW
@given(learner=any_learner, seed=seeds, power=st.integers(-490, 490), parameters=either_setting)
def test_a_positive_target_times_a_power_of_two(case, learner, parameters, seed, power):
    """The same base models to the bit, and a start value that is larger by the logarithm."""
    _, X, y = draw(case, seed, learner)
    model = case.build(**parameters | learner)
    expected = model.fit(X, y).predict(X)
    start, plain = model.model_.initial_raw, _changes(model, X)
    scaled = model.fit(X, np.ldexp(y, power)).predict(X)
    np.testing.assert_array_equal(_changes(model, X), plain)
    np.testing.assert_allclose(model.model_.initial_raw - start, power * np.log(2), atol=1e-12)
    np.testing.assert_allclose(scaled, np.ldexp(expected, power), rtol=1e-12)


def _changes(model, X):
    """What the stages say, without the start value."""
    parts = [part for stage in model.model_.stages for part in stage.terms]
    return [part.coefficient * part.model.predict_raw(X) for part in parts]


@pytest.mark.parametrize("case", LOGARITHMIC, ids=ids(LOGARITHMIC))
@FEW
@given(seed=seeds, exponents=st.tuples(st.floats(-150, 150), st.floats(-150, 150)))
def test_positive_targets_times_any_factors(case, seed, exponents):
    """Of several targets, each has a unit of its own."""
    _, X, y = draw(case, seed, {})
    factors = 10.0 ** np.array(exponents[: case.n_outputs])
    factors = factors if case.n_outputs > 1 else factors[0]
    model = case.build(**PLAIN)
    expected = model.fit(X, y).predict(X)
    scaled = model.fit(X, y * factors).predict(X)
    np.testing.assert_allclose(scaled / factors, expected, rtol=1e-8)
    if case.n_outputs == 1:  # mean losses keep the units of the target
        value = model.loss_.value(Target(y[:, None] * factors), raw_of(model, X)).mean()
        assert model.history_.train[-1] == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("case", LOGARITHMIC[3:], ids=ids(LOGARITHMIC[3:]))
def test_missing_targets_in_small_units(case):
    rng, X, y = draw(case, 3, {}, n=80)
    y[rng.uniform(size=80) < 0.3, 1] = np.nan
    model = case.build(**PLAIN)
    expected, losses = model.fit(X, y).predict(X), model.history_.train
    factors = np.array([2.0**-30, 2.0**8])
    scaled = model.fit(X, y * factors).predict(X)
    np.testing.assert_allclose(scaled / factors, expected, rtol=1e-12)
    np.testing.assert_allclose(model.history_.train, losses, rtol=1e-12)


@pytest.mark.parametrize("case", SMOOTH + LOGARITHMIC[3:], ids=ids(SMOOTH + LOGARITHMIC[3:]))
@pytest.mark.parametrize("power", [-300, 300])
def test_two_halves_are_one_go_in_any_units(case, power):
    _, X, y = draw(case, 1, {}, n=90)
    y = np.ldexp(y, power) * 0.37
    parameters = PLAIN | {"early_stopping": True, "learning_rate": 0.05, "n_iter_no_change": 30}
    parameters["learner"] = "tree"
    whole = case.build(**parameters | {"n_estimators": 6}).fit(X, y)
    halves = case.build(**parameters | {"n_estimators": 3, "warm_start": True}).fit(X, y)
    halves.set_params(n_estimators=6).fit(X, y)
    np.testing.assert_array_equal(halves.predict(X), whole.predict(X))
    np.testing.assert_allclose(halves.history_.train, whole.history_.train, rtol=1e-12)


def test_a_loss_derived_from_a_built_in_one_sees_the_target_as_it_is():
    seen = []

    class Own(Poisson):
        def gradients(self, target, raw):
            seen.append(target.y.max())
            return super().gradients(target, raw)

    _, X, y = draw(LOGARITHMIC[0], 0, {})
    BoostingRegressor(Own(), **PLAIN).fit(X, y * 4)
    assert set(seen) == {4 * y.max()}


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
@pytest.mark.parametrize("loss", ["squared_error", "huber"])
def test_targets_whose_squares_are_no_numbers(loss):
    X, y = np.arange(30.0)[:, None], np.arange(30.0)
    with pytest.raises(
        InvalidData, match=r"^y contains absolute values up to 2.9e\+201, .* Divide y by"
    ):
        BoostingRegressor(loss).fit(X, y * 1e200)
    model = BoostingRegressor("absolute_error", **PLAIN).fit(X, y * 1e200)
    expected = BoostingRegressor("absolute_error", **PLAIN).fit(X, y).predict(X)
    np.testing.assert_allclose(model.predict(X) / 1e200, expected, rtol=1e-9)


@pytest.mark.parametrize("case", LOCATION, ids=ids(LOCATION))
@FEW
@given(learner=any_learner, seed=seeds, shift=st.integers(-1000, 1000))
def test_a_target_shifted(case, learner, seed, shift):
    """By whole numbers, targets being multiples of 2^-20, so that no residual is rounded."""
    _, X, y = draw(case, seed, learner, n=64)
    y = np.rint(y * 2.0**20) / 2.0**20
    model = case.build(**PLAIN | learner | {"learning_rate": 1.0, "n_estimators": 1})
    expected = model.fit(X, y).predict(X)
    shifted = model.fit(X, y + shift).predict(X)
    np.testing.assert_allclose(shifted - shift, expected, rtol=1e-9, atol=1e-8)


# Units of the weights


WEIGHT_LEARNERS = [{}, {"multi_output": "shared"}, {"learner": LinearRegression()}]
factors = st.one_of(
    st.integers(-200, 200).map(lambda power: 2.0**power),
    st.floats(-60, 60).map(lambda exponent: 10.0**exponent),
)


def _weights(rng, n, kind):
    """Weights that are not whole in any of the units: whole numbers count repeated rows."""
    if kind == "multiples":
        return rng.integers(1, 5, size=n) / 7
    return rng.uniform(0.2, 3, n) if kind == "real" else np.full(n, 1 / 7)


@pytest.mark.filterwarnings("ignore:sample_weight is so uneven")
@pytest.mark.parametrize("case", LOSSES, ids=ids(LOSSES))
@FEW
@given(
    learner=st.sampled_from(WEIGHT_LEARNERS),
    seed=seeds,
    factor=factors,
    kind=st.sampled_from(["multiples", "real", "equal"]),
)
def test_weights_times_a_factor(case, learner, seed, factor, kind):
    rng, X, y = draw(case, seed, learner)
    weight = _weights(rng, len(X), kind)
    model = case.build(**AUTOMATIC | learner)
    expected = raw_of(model.fit(X, y, sample_weight=weight), X)
    scaled = raw_of(model.fit(X, y, sample_weight=weight * factor), X)
    np.testing.assert_allclose(scaled, expected, rtol=1e-8, atol=1e-8)
    if not learner and kind == "equal":  # no weights, once they are divided
        np.testing.assert_array_equal(scaled, expected)


@pytest.mark.parametrize("factor", [1e-12, 1e6])
@pytest.mark.parametrize(
    ("estimator", "extra"),
    [
        (BoostingRegressor, {}),
        (BoostingRegressor, {"loss": "poisson"}),
        (BoostingClassifier, {"class_weight": "balanced"}),
    ],
)
def test_weights_times_a_factor_with_all_defaults(factor, estimator, extra):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] + rng.normal(size=300) > 0.7).astype(int)
    weight = rng.exponential(size=300)
    model = estimator(**extra, n_estimators=10, random_state=0)
    expected = raw_of(model.fit(X, y, sample_weight=weight), X)
    scaled = raw_of(model.fit(X, y, sample_weight=weight * factor), X)
    np.testing.assert_allclose(scaled, expected, rtol=1e-9, atol=1e-9)
    assert np.ptp(expected) > 0.1


def test_weights_of_a_table_of_categories_times_a_factor():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(5, size=400), rng.normal(size=400)]).astype(float)
    y = X[:, 0] % 3 + rng.normal(0, 0.1, size=400)
    model = BoostingRegressor(n_estimators=10, random_state=0, categorical_features=[0])
    weight = rng.integers(1, 4, size=400) / 7
    expected = model.fit(X, y, sample_weight=weight).predict(X)
    scaled = model.fit(X, y, sample_weight=weight * 3e-6).predict(X)
    np.testing.assert_allclose(scaled, expected, rtol=1e-8)


@pytest.mark.parametrize("case", LOSSES, ids=ids(LOSSES))
@FEW
@given(seed=seeds, factor=st.integers(1, 3))
def test_whole_weights_are_repeated_rows_with_automatic_settings(case, seed, factor):
    """Also where all rows are repeated, which changes nothing at all."""
    rng, X, y = draw(case, seed, {}, n=60)
    weight = rng.integers(1, 4, size=60) * factor
    model = case.build(**AUTOMATIC, early_stopping=False, subsample=1.0)
    weighted = raw_of(model.fit(X, y, sample_weight=weight), X)
    repeated = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight, axis=0))
    np.testing.assert_allclose(weighted, raw_of(repeated, X), rtol=1e-9, atol=1e-9)


def test_limits_that_are_given_are_sums_of_weights():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.normal(size=200)
    model = BoostingRegressor(**PLAIN | {"min_samples_leaf": 10, "l2_regularization": 4.0})
    expected = model.fit(X, y).predict(X)
    model.set_params(min_samples_leaf=2.5, l2_regularization=1.0)
    scaled = model.fit(X, y, sample_weight=np.full(200, 0.25)).predict(X)
    np.testing.assert_allclose(scaled, expected, rtol=1e-12)
    model.set_params(min_samples_leaf=110 * 0.25)
    with pytest.warns(DataWarning, match="sample_weight sums to 50 over 200 rows"):
        model.fit(X, y, sample_weight=np.full(200, 0.25))
    assert np.ptp(model.predict(X)) == 0


def test_weights_of_which_one_row_has_nearly_all():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.normal(size=100)
    weight = np.where(np.arange(100) == 7, 1e9, rng.uniform(1, 2, size=100))
    with pytest.warns(DataWarning, match="effective number of rows is 1, not 100, and the model"):
        BoostingRegressor(early_stopping=False).fit(X, y, sample_weight=weight)


# Units of the columns


INCREASING = {
    "arctan": np.arctan,
    "cube": lambda x: x**3,
    "steps": lambda x: np.floor(1e6 * x) + x,
    "huge": lambda x: x * 1e300,
    "tiny": lambda x: x * 1e-300,
    "far": lambda x: np.where(x > 0, 1e308, -1e308) * (1 - np.exp(-np.abs(x))),
}


BINNED = [case for case in LOSSES if case.id in ("huber", "log_loss-3")]


@pytest.mark.parametrize("case", BINNED, ids=ids(BINNED))
@pytest.mark.parametrize("function", INCREASING.values(), ids=INCREASING)
@pytest.mark.parametrize("trees", ["separate", "shared"])
@settings(max_examples=2)
@given(seed=seeds)
def test_columns_put_through_an_increasing_function(case, function, trees, seed):
    _, X, y = draw(case, seed, {})
    model = case.build(**AUTOMATIC, learner="tree", multi_output=trees)
    expected = raw_of(model.fit(X, y), X)
    moved = function(X)
    np.testing.assert_array_equal(raw_of(model.fit(moved, y), moved), expected)

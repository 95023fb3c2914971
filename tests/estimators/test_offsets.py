"""Offsets: the best constant beside them, equivalent fits, and what belongs to them."""

import warnings
from decimal import Decimal
from inspect import cleandoc, isroutine, signature

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.metrics import mean_poisson_deviance
from tests.cases import PLAIN
from tests.model.editing import assert_refused, edit
from tests.reloaded import reloaded

import hilboost
from hilboost import (
    BoostingClassifier,
    BoostingRanker,
    BoostingRegressor,
    BoostingSurvival,
    SparseKernelClassifier,
)
from hilboost.boosting.offsets import starting_constant
from hilboost.callbacks import Checkpoint
from hilboost.core.errors import DataWarning, InvalidData, InvalidParameter
from hilboost.core.target import Target
from hilboost.losses import Gamma, Poisson, Tweedie

# Many tests compare predictions of the model alone.
pytestmark = pytest.mark.filterwarnings("ignore:The model was fitted with offsets")

RNG = np.random.default_rng(0)
N = 240
X = RNG.normal(size=(N, 3))
OFFSET = RNG.normal(size=N)
WEIGHT = RNG.integers(1, 3, size=N).astype(float)
TREES = {"learner": "tree", "n_estimators": 8, "random_state": 0}
PLAINEST = TREES | {"early_stopping": False}
COUNTS = RNG.poisson(np.exp(0.5 * X[:, 0] + OFFSET)).astype(float)
NUMBERS = X[:, 0] + OFFSET + 0.1 * RNG.normal(size=N)
CLASSES = (RNG.uniform(size=N) < expit(X[:, 0] + OFFSET)).astype(int)


def start(loss, y, make=BoostingRegressor, **more):
    model = make(loss, **TREES | {"n_estimators": 1, "early_stopping": False})
    return model.fit(X, y, WEIGHT, offset=OFFSET, **more).model_.initial_raw


def test_the_start_is_the_best_constant():
    np.testing.assert_allclose(
        start("squared_error", NUMBERS), np.average(NUMBERS - OFFSET, weights=WEIGHT)
    )
    rate = np.log((WEIGHT @ COUNTS) / (WEIGHT @ np.exp(OFFSET)))
    np.testing.assert_allclose(start("poisson", COUNTS), rate)
    median = np.median(np.repeat(NUMBERS - OFFSET, WEIGHT.astype(int)))
    np.testing.assert_allclose(start("absolute_error", NUMBERS), median, atol=1e-12)
    c = start("log_loss", CLASSES, BoostingClassifier)
    assert abs(WEIGHT @ (CLASSES - expit(c + OFFSET))) < 1e-6
    y = np.exp(NUMBERS)
    c = start("gamma", y * 1e6)
    assert abs(WEIGHT @ (y * 1e6 * np.exp(-c - OFFSET) - 1)) < 1e-6
    many = np.where(X[:, 1] > 1, 2, CLASSES)
    raw = np.column_stack([OFFSET, -OFFSET, 0 * OFFSET])
    model = BoostingClassifier(**TREES | {"n_estimators": 1, "early_stopping": False})
    raw += model.fit(X, many, offset=raw).model_.initial_raw
    p = np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(p.mean(axis=0), np.bincount(many) / N, atol=1e-6)


@pytest.mark.parametrize(
    ("learner", "stopping"),
    [("tree", True), ("kernel", False), ("linear", True), (["tree", "linear"], False)],
)
def test_squared_errors_of_differences(learner, stopping):
    # The fit is that of the differences: early stopping, folds and all.
    settings = {**TREES, "learner": learner, "early_stopping": stopping}
    model = BoostingRegressor(**settings).fit(X, NUMBERS, WEIGHT, offset=OFFSET)
    plain = BoostingRegressor(**settings).fit(X, NUMBERS - OFFSET, WEIGHT)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), rtol=0, atol=1e-6)
    np.testing.assert_allclose(model.predict(X, OFFSET), plain.predict(X) + OFFSET, atol=1e-6)
    assert model.score(X, NUMBERS, offset=OFFSET) > model.score(X, NUMBERS)
    np.testing.assert_allclose(model.history_.train, plain.history_.train, rtol=1e-6)


def test_weights_repetition_and_order():
    model = BoostingRegressor("poisson", **PLAIN, learner="tree")
    model.fit(X, COUNTS, WEIGHT, offset=OFFSET)
    rows = np.random.default_rng(1).permutation(np.repeat(np.arange(N), WEIGHT.astype(int)))
    again = BoostingRegressor("poisson", **PLAIN, learner="tree")
    again.fit(X[rows], COUNTS[rows], offset=OFFSET[rows])
    np.testing.assert_array_equal(model.predict(X, OFFSET), again.predict(X, OFFSET))
    exposure = np.exp(OFFSET)
    np.testing.assert_allclose(model.predict(X, OFFSET), exposure * model.predict(X))


def test_held_out_rows():
    settings = {**TREES, "early_stopping": True, "n_estimators": 30}
    model = BoostingRegressor("poisson", **settings)
    model.fit(X, COUNTS, offset=OFFSET, X_val=X + 1e-9, y_val=COUNTS, offset_val=OFFSET)
    predicted = model.predict_raw(X, OFFSET)
    assert model.history_.validation[model.n_estimators_] == pytest.approx(
        model.loss_.value(Target(COUNTS[:, None]), predicted).mean()
    )


def test_an_exposure_among_the_features_warns():
    exposure = np.round(np.exp(OFFSET), 2) + 0.01
    table = np.column_stack([X, exposure])
    model = BoostingRegressor("poisson", **TREES)
    with pytest.warns(DataWarning, match="^the offset is the logarithm of column 3, which is a fe"):
        model.fit(table, COUNTS, offset=np.log(exposure))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(table, COUNTS, offset=np.log(exposure * (1 + X[:, 0] ** 2)))
        model.fit(np.ones((N, 1)), COUNTS, offset=np.zeros(N))
        model.fit(X, COUNTS, offset=np.log(exposure))


def test_classes():
    model = BoostingClassifier(**PLAINEST).fit(X, CLASSES, offset=OFFSET)
    raw = model.predict_raw(X)[:, 0] + OFFSET
    np.testing.assert_allclose(model.predict_proba(X, OFFSET)[:, 1], expit(raw))
    np.testing.assert_array_equal(model.predict(X, OFFSET), (raw > 0).astype(int))
    assert model.score(X, CLASSES, offset=OFFSET) == ((raw > 0) == CLASSES).mean()
    assert BoostingClassifier(**PLAINEST).fit(X, CLASSES, offset=0 * OFFSET).predict_raw(
        X
    ) == pytest.approx(BoostingClassifier(**PLAINEST).fit(X, CLASSES).predict_raw(X))


def test_levels_are_encoded_beside_the_offset():
    """Levels with long exposures are no risky ones."""
    rng = np.random.default_rng(0)
    level = rng.integers(100, size=4000)
    years = np.exp(rng.normal(size=100))[level] * rng.uniform(0.5, 1.5, 4000)
    mean = years * np.exp(rng.normal(size=100) / 2 - 1)[level]
    y, X = rng.poisson(mean), np.array([f"level {k}" for k in level], dtype=object)[:, None]
    settings = {"learner": "tree", "n_estimators": 100, "random_state": 0}
    model = BoostingRegressor("poisson", **settings).fit(X, y, offset=np.log(years))
    rates = BoostingRegressor("poisson", **settings).fit(X, y / years, sample_weight=years)
    found = model.predict(X, offset=np.log(years)), rates.predict(X) * years
    by_offset, by_weight = (mean_poisson_deviance(mean, predicted) for predicted in found)
    assert by_offset < 1.3 * by_weight
    y, both = X[:, 0] == "level 1", BoostingRegressor(**PLAINEST, target_encoding=True)
    beside = both.fit(X, y + years, offset=years).predict(X)
    np.testing.assert_allclose(beside, both.fit(X, y).predict(X), atol=1e-6)


def test_rankings():
    query, order = np.repeat(np.arange(24), 10), np.random.default_rng(2).permutation(N)
    y = np.clip(np.round(NUMBERS), 0, 3)
    ranker = BoostingRanker(**PLAINEST).fit(X, y, groups=query, offset=OFFSET)
    raw, again = ranker.predict(X), BoostingRanker(**PLAINEST)
    again.fit(X[order], y[order], groups=query[order], offset=OFFSET[order])
    np.testing.assert_array_equal(again.predict(X), raw)
    np.testing.assert_allclose(ranker.predict(X, OFFSET), raw + OFFSET)
    *_, last = ranker.staged_predict(X, OFFSET)
    np.testing.assert_array_equal(last, ranker.predict(X, OFFSET))
    with_offset = ranker.score(X, y, groups=query, offset=OFFSET)
    assert with_offset > ranker.score(X, y, groups=query)


@pytest.mark.parametrize("loss", ["cox", "aft"])
def test_survival_times(loss):
    times = np.empty(N, dtype=[("event", bool), ("time", float)])
    times["event"], times["time"] = RNG.uniform(size=N) < 0.7, RNG.exponential(np.exp(-OFFSET))
    one, other = (
        BoostingSurvival(loss, **PLAINEST).fit(X, times, offset=OFFSET + shift) for shift in (0, 2)
    )
    np.testing.assert_allclose(  # the baseline takes up a constant
        one.predict_survival_function(X, [0.5, 1.0], offset=OFFSET),
        other.predict_survival_function(X, [0.5, 1.0], offset=OFFSET + 2),
        rtol=1e-5,
    )
    assert one.score(X, times, offset=OFFSET) > one.score(X, times)


def test_continued_and_refitted_models(tmp_path):
    whole = BoostingRegressor("poisson", **PLAINEST).fit(X, COUNTS, offset=OFFSET)
    part = BoostingRegressor("poisson", **PLAINEST | {"n_estimators": 3}, warm_start=True)
    part.fit(X, COUNTS, offset=OFFSET).set_params(n_estimators=8).fit(X, COUNTS, offset=OFFSET)
    np.testing.assert_allclose(part.predict(X), whole.predict(X))
    with pytest.raises(InvalidData, match="fitted with offsets, but offset is None; pass offset"):
        part.set_params(n_estimators=9).fit(X, COUNTS)
    same = whole.refit_leaves(X, COUNTS, offset=OFFSET, keep=0.5)
    np.testing.assert_allclose(same.predict(X), whole.predict(X), rtol=1e-6)
    path = Checkpoint(tmp_path / "c")
    BoostingRegressor(**PLAINEST).fit(X, NUMBERS, offset=OFFSET, callbacks=[path])
    with pytest.raises(InvalidData, match=r"different data \(offset\)"):
        BoostingRegressor(**PLAINEST).fit(X, NUMBERS, offset=OFFSET + 1, callbacks=[path])


def test_files_note_offsets(tmp_path):
    model = BoostingRegressor("poisson", **PLAINEST, warm_start=True)
    model.fit(X, COUNTS, offset=OFFSET).save(tmp_path / "model")
    loaded = hilboost.load(tmp_path / "model")
    assert loaded.fitted_.beside_offsets
    for passed in (None, OFFSET):
        np.testing.assert_array_equal(loaded.predict(X, passed), model.predict(X, passed))
    loaded.set_params(n_estimators=10)
    with pytest.raises(InvalidData, match="stages were fitted with offsets.* or set warm_start"):
        loaded.fit(X, COUNTS)
    with pytest.raises(InvalidData, match=r"stages were fitted with offsets.*; pass offset\.$"):
        loaded.set_params(warm_start=False).refit_leaves(X, COUNTS)
    loaded.set_params(warm_start=True)
    assert loaded.fit(X, COUNTS, offset=OFFSET).n_estimators_ == 10


def replaced(row, value):
    return np.where(np.arange(N) == row, value, OFFSET)


WIDE = "1 column, one for each output; it has 2"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"offset": OFFSET[:5]}, "one number for each of the 240 rows"),
        ({"offset": replaced(1, np.nan)}, "offset must be finite; row 1"),
        ({"offset": replaced(1, -np.inf)}, "row 1 has -inf, as for an exposure of 0: leave"),
        ({"sample_weight": -np.arange(N)}, "and pass logarithms of exposures as offset"),
        ({"offset": np.array(["a"] * N)}, "offset must contain numbers; row 0 has 'a'"),
        ({"offset": [[0.0], [1.0, 2.0], *[[3.0]] * (N - 2)]}, "same number of values in each row"),
        ({"offset": "log_exposure"}, "the text 'log_exposure'; pass the values of the rows"),
        ({"offset": np.zeros((N, 2))}, WIDE),
        ({"offset": OFFSET, "X_val": X, "y_val": NUMBERS}, "offset and offset_val must both be"),
        (
            {"offset": OFFSET, "X_val": X, "y_val": NUMBERS, "offset_val": np.zeros((N, 2))},
            f"offset_val: .*{WIDE}",
        ),
        ({"offset": OFFSET, "offset_val": OFFSET}, "offset_val requires X_val"),
    ],
)
def test_bad_offsets(rows, message):
    with pytest.raises(InvalidData, match=message):
        BoostingRegressor(**TREES).fit(X, NUMBERS, **rows)


def test_bad_offsets_of_predictions():
    model = BoostingRegressor(**TREES).fit(X, NUMBERS)
    for predict in (model.predict, model.predict_interval):
        with pytest.raises(InvalidData, match=WIDE):
            predict(X, offset=np.zeros((N, 2)))


def exposure_warnings(loss, y, offset):
    target = Target(np.asarray(y, dtype=float)[:, None], offset=offset[:, None])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        starting_constant(loss, target)
    return ["logarithms of exposures" in str(warning.message) for warning in caught]


def drawn(loss, mean, rng):
    shape = 2.0
    if isinstance(loss, Gamma):
        return rng.gamma(shape, mean / shape) + 1e-12
    return rng.poisson(mean).astype(float)


LOG_LINKS = st.sampled_from([Poisson(), Gamma(), Tweedie(1.5)])


@given(
    LOG_LINKS, st.sampled_from([(0.1, 5), (0.5, 12), (1, 24)]), st.booleans(), st.integers(0, 99)
)
def test_exposures_of_a_few_units_warn(loss, units, whole, seed):
    rng = np.random.default_rng(seed)
    exposure = rng.uniform(*units, 5000)
    exposure = np.maximum(np.rint(exposure), 1) if whole else exposure
    y = drawn(loss, exposure * np.exp(0.4 * rng.normal(size=5000)), rng)
    assert exposure_warnings(loss, y, exposure) == [True]
    assert exposure_warnings(loss, y, np.log(exposure)) == []


EXPOSURES = {
    "some years": lambda rng, n: rng.uniform(1, 3, n),
    "months": lambda rng, n: rng.integers(1, 13, n).astype(float),
    "areas": lambda rng, n: rng.lognormal(0, 0.7, n),
}


def test_most_exposures_warn_and_few_other_offsets():
    """Of 50 draws of each kind; 1 of 150 others may look like exposures by chance."""
    n, n_others = 2000, {"logarithms": 0, "others": 0, "predictions": 0}
    for draw in EXPOSURES.values():
        n_exposures = 0
        for seed in range(50):
            rng = np.random.default_rng(seed)
            exposure, raw = draw(rng, n), 0.5 * rng.normal(size=n) - 0.5
            known = raw + 0.3 * rng.normal(size=n)
            y = rng.poisson(np.exp(np.log(exposure) + raw))
            n_exposures += len(exposure_warnings(Poisson(), y, exposure))
            for kind, offset, log_mean in (
                ("logarithms", np.log(20 * exposure), np.log(exposure) + raw),
                ("others", exposure, raw),
                ("predictions", known - known.min() + 0.1, raw),
            ):
                y = rng.poisson(np.exp(log_mean))
                n_others[kind] += len(exposure_warnings(Poisson(), y, offset))
        assert n_exposures >= 35
    assert max(n_others.values()) <= 1


@given(
    LOG_LINKS,
    st.floats(1.01, 50),  # the shortest exposure
    st.floats(1.5, 1000),  # longest by shortest
    st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0, 1.2]),
    st.integers(50, 5000),
    st.integers(0, 99),
)
def test_logarithms_above_zero_do_not_warn(loss, shortest, ratio, power, n, seed):
    rng = np.random.default_rng(seed)
    exposure = shortest * np.exp(np.log(ratio) * rng.uniform(size=n))
    rate = np.exp(rng.uniform(-2, 1) + 0.5 * rng.normal(size=n))
    y = drawn(loss, exposure**power * rate, rng)
    offset = np.log(exposure)
    if y.any() and offset.max() > 1:
        assert exposure_warnings(loss, y, offset) == []


@given(
    st.sampled_from([(0.1, 1), (0.1, 5), (1, 12), (30, 365)]),
    st.sampled_from(["poisson", "gamma", "tweedie"]),
    st.integers(0, 99),
)
def test_exposures_of_predictions_warn_after_a_fit_to_logarithms(units, loss, seed):
    rng = np.random.default_rng(seed)
    exposure, again = rng.uniform(*units, (2, N))
    y = exposure * rng.gamma(2, 1, N)
    y = y if loss == "gamma" else np.rint(y)
    model = BoostingRegressor(loss, **TREES | {"n_estimators": 1, "early_stopping": False})
    model.fit(X, y, offset=np.log(exposure))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for right in (np.log(again), np.log(again[:1]), np.log(2 * again), np.log(again / 3)):
            model.predict(X[: len(right)], offset=right)
        model.predict(X, offset=np.full(N, again.max()))
    for predict in (model.predict, lambda *rows: next(iter(model.staged_predict(*rows)))):
        with pytest.warns(DataWarning, match="offset is between .*pass the logarithms of exposur"):
            predict(X, again)


def test_files_keep_the_range_of_offsets(tmp_path):
    exposure = RNG.uniform(0.1, 5, N)
    for loss in ("poisson", "squared_error"):
        model = BoostingRegressor(loss, **PLAINEST).fit(X, COUNTS, offset=np.log(exposure))
        model.save(tmp_path / "model")
        loaded = hilboost.load(tmp_path / "model")
        assert loaded.fitted_.offset_range == model.fitted_.offset_range
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            loaded.predict(X, exposure)
        assert len(caught) == (loss == "poisson")
    for ends in ([0.0], [0.0, "b"], [0.0, None], 3, [0.0, 1e999], [False, 1.0]):
        model.save(tmp_path / "damaged")
        assert_refused(tmp_path / "damaged", header={"offset_range": ends}, match="offset_range")
    edit(tmp_path / "model", header={"offset_range": None})  # as files of earlier versions
    assert hilboost.load(tmp_path / "model").fitted_.offset_range is None


def test_intervals_of_ensembles_are_those_with_offsets():
    settings = {**TREES, "early_stopping": True}
    model = BoostingRegressor("poisson", **settings).fit(X, COUNTS, offset=OFFSET)
    inside = (model.predict_interval(X, 0.8, offset=OFFSET) - COUNTS[:, None]) * [-1, 1] >= 0
    assert 0.75 < inside.all(axis=1).mean() < 0.95
    # Beside an identity link, an offset moves the ends of intervals.
    model = BoostingRegressor(**settings).fit(X, NUMBERS, offset=OFFSET)
    found = model.predict_interval(X, offset=OFFSET)
    np.testing.assert_allclose(found, model.predict_interval(X) + OFFSET[:, None])


def test_calibrations_are_those_with_offsets():
    known, new = slice(0, 120), slice(120, None)
    model = BoostingRegressor("poisson", **PLAINEST).fit(X[known], COUNTS[known])
    model.calibrate(X[new], COUNTS[new], offset=OFFSET[new])
    error = np.abs(COUNTS[new] - model.predict(X[new], OFFSET[new]))
    low, high = model.predict_interval(X[known], 0.9, offset=OFFSET[known]).T
    expected = np.quantile(error, 0.9 * 121 / 120, method="higher")
    middle = model.predict(X[known], OFFSET[known])
    np.testing.assert_allclose(high, middle + expected)
    np.testing.assert_allclose(low, np.maximum(middle - expected, 0))  # counts are at least 0
    classes = BoostingClassifier(**PLAINEST).fit(X, CLASSES, offset=OFFSET)
    classes.calibrate(X + 1e-9, CLASSES, offset=OFFSET)
    sets = classes.predict_set(X, 0.8, offset=OFFSET)
    assert sets[np.arange(N), CLASSES].mean() >= 0.8
    assert (sets != classes.predict_set(X, 0.8)).any()


def test_predictions_after_each_stage_are_those_with_offsets():
    many = np.where(X[:, 1] > 1, 2, CLASSES)
    for y, offset in ((CLASSES, OFFSET), (many, np.column_stack([OFFSET, -OFFSET, 0 * OFFSET]))):
        model = BoostingClassifier(**PLAINEST).fit(X, y, offset=offset)
        scores = list(model.staged_decision_function(X, offset))
        np.testing.assert_array_equal(scores[-1], model.decision_function(X, offset))
        assert (scores[0] != scores[-1]).any()
        *_, last = model.staged_predict_proba(X, offset)
        np.testing.assert_array_equal(last, model.predict_proba(X, offset))
        np.testing.assert_array_equal(np.log(last), model.predict_log_proba(X, offset))
        *_, last = model.staged_predict(X, offset)
        np.testing.assert_array_equal(last, model.predict(X, offset))
    model = BoostingRegressor("poisson", **PLAINEST).fit(X, COUNTS, offset=OFFSET)
    *_, last = model.staged_predict(X, OFFSET)
    np.testing.assert_array_equal(last, model.predict(X, OFFSET))


def test_offsets_of_python_numbers():
    model = BoostingRegressor(**TREES).fit(X, NUMBERS, offset=OFFSET)
    several = [Decimal(str(value)) for value in OFFSET.tolist()]
    for passed in (OFFSET.astype(object), several):
        np.testing.assert_array_equal(model.predict(X, passed), model.predict(X, OFFSET))


def test_models_without_offsets_refuse_them():
    model = SparseKernelClassifier(n_basis=5).fit(X, CLASSES)
    predictions = "predict", "predict_raw", "decision_function", "predict_proba"
    staged = "staged_predict", "staged_decision_function", "staged_predict_proba"
    for method in (*predictions, *staged, "score", "calibrate"):
        more = (CLASSES,) if method in ("score", "calibrate") else ()
        message = "^SparseKernelClassifier does not support offset, because its fit does not; omit"
        with pytest.raises(InvalidParameter, match=message):  # at the call, not at the first stage
            getattr(model, method)(X, *more, offset=OFFSET)
    np.testing.assert_array_equal(model.predict(X, offset=None), model.predict(X))


def test_signatures_show_offsets_where_fits_take_them():
    classes = [getattr(hilboost, name) for name in hilboost.__all__]
    classes = [one for one in classes if hasattr(one, "takes_offsets")]
    assert {one.takes_offsets for one in classes} == {True, False}
    of_class = {one: [name for name in dir(one) if not name.startswith("_")] for one in classes}
    shown = {
        (one, name): "offset" in signature(getattr(one, name)).parameters
        for one, names in of_class.items()
        for name in names
        if isroutine(getattr(one, name))
    }
    some = {name for (_, name), found in shown.items() if found}
    assert {"fit", "predict", "staged_predict", "calibrate", "report"} <= some
    assert [key for key, found in shown.items() if found and not key[0].takes_offsets] == []
    assert [
        (one, name)
        for (one, name), found in shown.items()
        if name in some and one.takes_offsets and not found
    ] == []
    documented = [key for key in shown if "\noffset : " in cleandoc(getattr(*key).__doc__ or "")]
    assert all(one.takes_offsets for one, _ in documented)


@pytest.mark.parametrize("stopping", [False, True])  # with stopping, an ensemble of folds
def test_predictions_without_the_offsets_of_the_fit_warn_once(stopping):
    settings = {**TREES, "early_stopping": stopping}
    model = BoostingRegressor("poisson", **settings).fit(X, COUNTS, offset=OFFSET)
    model = model if stopping else model.calibrate(X + 1e-9, COUNTS, offset=OFFSET)
    if not stopping:
        model = reloaded(model)
    labels = BoostingClassifier(**TREES).fit(X, CLASSES, offset=OFFSET)
    for predict, more in (
        (model.predict, ()),
        (model.predict_interval, ()),
        (model.score, (COUNTS,)),
        (lambda X, **offset: list(model.staged_predict(X, **offset))[-1], ()),
        (labels.predict_proba, ()),
        (labels.decision_function, ()),
        (labels.predict, ()),
    ):
        with pytest.warns(DataWarning, match="fitted with offsets.*pass offset") as caught:
            bare = predict(X, *more)
        assert [one.filename for one in caught] == [__file__]
        with warnings.catch_warnings(action="error"):
            np.testing.assert_array_equal(bare, predict(X, *more, offset=np.zeros(N)))
    with pytest.warns(DataWarning, match="fitted with offsets") as caught:
        model.report_facts(X, COUNTS)
    assert len(caught) == 1
    with warnings.catch_warnings(action="error"):
        model.report_facts(X, COUNTS, offset=OFFSET)
        BoostingRegressor(**TREES).fit(X, NUMBERS).predict(X)


@pytest.mark.slow
def test_kernels_of_counts_with_very_different_exposures():
    rng = np.random.default_rng(1)
    table = rng.normal(size=(400, 3))
    smooth, exposure = np.sin(table[:, 0]) + table[:, 1] * table[:, 2] / 2, rng.normal(0, 3, 400)
    counts = rng.poisson(np.exp(smooth + exposure)).astype(float)
    model = BoostingRegressor("poisson", learner="kernel", n_jobs=1, random_state=0)
    raw = model.fit(table, counts, offset=exposure).predict_raw(table)[:, 0]
    assert np.mean((raw - smooth) ** 2) < 0.15 * smooth.var()

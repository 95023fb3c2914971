"""Estimators that predict distributions: their objects, metrics, identities and bad input."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.cases import DISTRIBUTIONS, PLAIN, ids
from tests.refusals import refused
from tests.reloaded import reloaded

import hilboost
from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.core.errors import IncompatibleParts, InvalidData, InvalidParameter
from hilboost.core.target import Target
from hilboost.distributions import Distribution
from hilboost.losses import DistributionLoss, MixtureOfNormals, NegativeBinomial, Normal, StudentT
from hilboost.metrics import CRPS, IntervalScore, LogScore

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(300, 3))
Y = np.sin(3 * X[:, 0]) + np.exp(X[:, 1]) * RNG.normal(size=300)
MODEL = BoostingRegressor("normal", **PLAIN).fit(X, Y)

all_losses = pytest.mark.parametrize("case", DISTRIBUTIONS, ids=ids(DISTRIBUTIONS))


def right_censored(y):
    ends = zip(y, np.where(y > np.median(y), np.inf, y), strict=True)
    return np.array(list(ends), dtype=[("lower", float), ("upper", float)])


def fitted(case, n=120, **parameters):
    y = case.draw(np.random.default_rng(1), n)[:, 0]
    rows = np.column_stack([y + RNG.normal(size=n), RNG.normal(size=n)])
    return BoostingRegressor(case.name, **PLAIN | parameters).fit(rows, y), rows, y


@all_losses
def test_a_distribution_of_each_row(case):
    model, rows, y = fitted(case)
    found = model.predict_distribution(rows)
    assert isinstance(found, Distribution)
    assert len(found) == len(y)
    assert found.quantile(0.5).shape == found.mean.shape == found.std.shape == y.shape
    assert found.quantile([0.1, 0.9]).shape == found.interval(0.9).shape == (len(y), 2)
    assert found.cdf(y).shape == found.pdf(y).shape == found.crps(y).shape == y.shape
    assert found.cdf(1.0).shape == y.shape
    assert found.cdf(np.tile(y[:, None], 3)).shape == (len(y), 3)
    np.testing.assert_array_equal(found.sample(5, 0), found.sample(5, 0))
    np.testing.assert_array_equal(model.predict(rows), found.mean)
    constant = model.first_stages(0).predict_distribution(rows)
    assert found.log_score(y).mean() < constant.log_score(y).mean()
    assert found.crps(y).mean() < constant.crps(y).mean()
    loaded = reloaded(model).predict_distribution(rows)
    np.testing.assert_array_equal(loaded.log_score(y), found.log_score(y))


@pytest.mark.parametrize("case", DISTRIBUTIONS[1:7:2], ids=ids(DISTRIBUTIONS[1:7:2]))
def test_the_unit_of_the_target_does_not_matter(case):
    model, rows, y = fitted(case)
    for unit in (1e-9, 1e9):
        scaled = clone(model).fit(rows, y * unit).predict_distribution(rows)
        expected = model.predict_distribution(rows).log_score(y) + np.log(unit)
        np.testing.assert_allclose(scaled.log_score(y * unit), expected, rtol=1e-5, atol=1e-5)


def test_a_given_scale_is_squared_error_bit_for_bit():
    early = PLAIN | {"early_stopping": True, "n_estimators": 40, "learner": "tree"}
    expected = BoostingRegressor("squared_error", **early).fit(X, Y)
    for scale in (1.0, 2.0, 0.25):
        model = BoostingRegressor(Normal(scale), **early).fit(X, Y)
        np.testing.assert_array_equal(model.predict(X), expected.predict(X))
        np.testing.assert_array_equal(model.predict_distribution(X).std, scale)
        residual = (Y - model.predict(X)) / scale
        log_score = 0.5 * residual**2 + np.log(scale * np.sqrt(2 * np.pi))
        np.testing.assert_allclose(model.predict_distribution(X).log_score(Y), log_score)


def smooth(n=400):
    rng = np.random.default_rng(1)
    rows = rng.uniform(-1, 1, (n, 3))
    waves = np.sin(4 * rows[:, 0]) * np.cos(3 * rows[:, 2])
    return rows, waves + 0.1 * np.exp(rows[:, 1]) * rng.normal(size=n)


@pytest.fixture(scope="module")
def around_a_location():
    rows, y = smooth()
    return BoostingRegressor("normal", random_state=0, n_estimators=40).fit(rows[:250], y[:250])


def loss_of_constant(model, y):
    """Mean loss of the best constant within the bounds of a fit, and some more."""
    loss, target = model.loss_, Target(y[:, None])
    units = loss.units(target)
    start = units.raw_in_own(units.loss.initial_raw(target.with_y(target.y / units.size)))
    return loss.value(target, np.tile(start, (len(y), 1))).mean() + 0.05


def test_the_location_is_learned_first(around_a_location):
    model, (rows, y) = around_a_location, smooth()
    found = model.predict_distribution(rows[250:])
    settings = {"random_state": 0, "n_estimators": 40}
    mean = BoostingRegressor(**settings).fit(rows[:250], y[:250])
    residual = np.sqrt((mean.fitted_.calibration.scores**2).mean())
    constant = np.column_stack([mean.predict(rows[250:]), np.full(150, np.log(residual))])
    assert model.parts_["kernel"].weight > 0.5
    assert found.crps(y[250:]).mean() < Normal().distribution_of(constant).crps(y[250:]).mean()
    narrow, wide = found.std[rows[250:, 1] < -0.5], found.std[rows[250:, 1] > 0.5]
    assert wide.mean() > narrow.mean()
    losses = model.history_.validation
    assert losses.argmin() == model.n_estimators_
    np.testing.assert_array_equal(reloaded(model).predict_raw(rows), model.predict_raw(rows))
    *_, last = model.staged_predict(rows)
    np.testing.assert_allclose(last, model.predict(rows))


def test_a_location_that_does_not_help_is_dropped():
    y = np.where(RNG.uniform(size=120) < 0.6, 0.0, RNG.normal(size=120))
    model = BoostingRegressor("student_t", random_state=0, n_estimators=10).fit(X[:120], y)
    assert model.predict_distribution(X[:120]).log_score(y).mean() < loss_of_constant(model, y)


@pytest.mark.slow
def test_reports_show_levels_scores_and_parameters(around_a_location):
    rows, y = smooth()
    facts = around_a_location.report_facts(rows[250:], y[250:])
    found = facts["distribution"]
    assert sum(found["pit"]["counts"]) == 150
    predicted = around_a_location.predict_distribution(rows[250:])
    levels, _ = np.histogram(predicted.pit(y[250:]), bins=20, range=(0, 1))
    np.testing.assert_array_equal(found["pit"]["counts"], levels)
    scores = {one["key"]: one["value"] for one in facts["scores"]}
    for name in ("crps", "log_score", "interval_score"):
        np.testing.assert_allclose(scores[name], getattr(predicted, name)(y[250:]).mean())
    assert set(found["parameters"]) == {"location", "scale"}
    assert [one["level"] for one in facts["quantiles"]["levels"]][3] == 0.5
    assert "Levels of the targets" in around_a_location.report(rows[250:], y[250:]).html
    counts = np.floor(np.exp(y))
    model = BoostingRegressor("negative_binomial", **PLAIN).fit(rows, counts)
    levels = model.report_facts(rows, counts)["distribution"]["pit"]["counts"]
    assert max(levels) < 3 * np.mean(levels)


@pytest.mark.parametrize("case", DISTRIBUTIONS[::3], ids=ids(DISTRIBUTIONS[::3]))
def test_shapley_values_of_each_parameter(case):
    model, rows, _ = fitted(case, learner="tree")
    for method in ("interventional", "path_dependent"):
        found = model.shap_values(rows[:30], method=method)
        assert found.values.shape == (30, 2, len(model.loss_.parameters))
        total = found.values.sum(axis=1) + found.base_values
        np.testing.assert_allclose(total, model.predict_raw(rows[:30]), atol=1e-8)


@all_losses
def test_onnx_returns_the_parameters(case, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    model, rows, _ = fitted(case)
    hilboost.to_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (found,) = session.run(["parameters"], {session.get_inputs()[0].name: rows})
    expected = np.column_stack([*model.predict_distribution(rows).parameters.values()])
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_poisson_is_the_limit_of_the_negative_binomial():
    raw, y = np.column_stack([RNG.normal(size=50), np.full(50, -18.0)]), RNG.poisson(1.0, (50, 1))
    target, loss = Target(y.astype(float)), NegativeBinomial()
    expected = stats.poisson(np.exp(raw[:, 0])).logpmf(y[:, 0])
    np.testing.assert_allclose(-loss.value(target, raw), expected, atol=1e-6)
    np.testing.assert_allclose(
        loss.gradients(target, raw).negative_gradient[:, 0], y[:, 0] - np.exp(raw[:, 0]), atol=1e-6
    )


def test_the_information_of_student_t_is_a_difference_of_trigamma_functions():
    df = np.concatenate([np.linspace(1.01, 5, 50), np.geomspace(5, 300, 50)])
    expected = (special.polygamma(1, df / 2) - special.polygamma(1, (df + 1) / 2)) / 4
    expected -= (df + 5) / (2 * df * (df + 1) * (df + 3))
    found = StudentT().information((np.zeros(100), np.ones(100), df))[2]
    np.testing.assert_allclose(found, (df - 1) ** 2 * expected, rtol=1e-9)


@st.composite
def drawn_tables(draw):
    """A loss, and a table with constants, outliers, ties or zeros in any unit."""
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    case = draw(st.sampled_from(DISTRIBUTIONS))
    n = draw(st.sampled_from([5, 12, 60, 200]) | st.integers(5, 500))
    y = case.draw(rng, n)[:, 0]
    kind = draw(st.sampled_from(["plain", "constant", "ties", "outliers", "zeros", "all zeros"]))
    support, unit = case.make().support, draw(st.sampled_from([1e-9, 1.0, 1e9]))
    if kind == "constant":
        y = np.full(n, y[0])
    elif kind == "ties":
        y = y[rng.integers(3, size=n)]
    elif kind == "outliers" and support != "fractions":
        y[: 1 + n // 50] *= 1e6
    elif support in ("numbers", "counts") and kind.endswith("zeros"):
        y[rng.uniform(size=n) < (0.6 if kind == "zeros" else 1.0)] = 0.0
    if support in ("numbers", "positive") or (support == "counts" and unit > 1):
        y = y * unit
    rows = rng.normal(size=(n, 3))
    if draw(st.booleans()):
        rows[:, 0] = y * rng.normal(1.0, 0.1, size=n)
    rows[:, 1] = draw(st.sampled_from([0.0, np.nan, unit])) * np.rint(rows[:, 1])
    return case.name, rows, y


@given(drawn_tables(), st.sampled_from(["auto", "linear"]))
def test_drawn_tables_give_numbers_no_worse_than_constants(drawn, learner):
    """Linear learners extrapolate to rows that are far away."""
    name, rows, y = drawn
    model = BoostingRegressor(name, random_state=0, n_estimators=20, learner=learner)
    found = model.fit(rows, y).predict_distribution(rows)
    assert found.log_score(y).mean() <= loss_of_constant(model, y)
    far = model.predict_distribution(1e3 * rows)
    for one in (found, far):
        for values in (one.mean, one.std, one.quantile([0.01, 0.5, 0.99]), one.crps(y)):
            assert not np.isnan(values).any()


def test_metrics_and_scores_of_scikit_learn():
    metrics = ["crps", "log_score", "interval_score"]
    model = BoostingRegressor("normal", **PLAIN | {"eval_metric": metrics})
    model.fit(X[:200], Y[:200], X_val=X[200:], y_val=Y[200:])
    found, last = model.predict_distribution(X[200:]), model.n_estimators_
    learned = model.predict_distribution(X[:200]).log_score(Y[:200])
    np.testing.assert_allclose(model.history_.train[-1], learned.mean())
    for name, scores, scorer in (
        ("crps", found.crps(Y[200:]), CRPS()),
        ("log_score", found.log_score(Y[200:]), LogScore()),
        ("interval_score", found.interval_score(Y[200:]), IntervalScore()),
    ):
        np.testing.assert_allclose(model.history_.metrics[name][last], scores.mean())
        np.testing.assert_allclose(scorer(model, X[200:], Y[200:]), -scores.mean())
    small = BoostingRegressor("normal", **PLAIN)
    assert (cross_val_score(small, X, Y, cv=2, scoring=CRPS()) < 0).all()


@pytest.mark.parametrize(
    ("loss", "y", "said"),
    [
        ("gamma_shape", [1.0, -2.0], "requires positive targets; row 1 has -2"),
        ("negative_binomial", [1.0, -2.0], "requires counts"),
        ("zero_inflated_poisson", [1.0, 0.5], "row 1 has 0.5"),
        ("beta", [0.5, 1.0], "requires targets between 0 and 1; row 1 has 1"),
        ("normal", [[1.0, 2.0], [3.0, 4.0]], "supports one target column; got 2"),
    ],
)
def test_impossible_targets(loss, y, said):
    refused(InvalidData, said, BoostingRegressor(loss).fit, X[:2], y)


@pytest.mark.parametrize("unit", [1e-300, 1e-70, 1e70, 1e200])
@pytest.mark.parametrize("y", [Y, right_censored(Y)], ids=["numbers", "bounds"])
def test_sizes_whose_scales_are_out_of_range(y, unit):
    fit = BoostingRegressor("normal", **PLAIN).fit
    scaled = y * unit if y.dtype.names is None else right_censored(Y * unit)
    refused(InvalidData, "^y has the size .* divide y by a constant", fit, X, scaled)


class Gumbel(DistributionLoss):
    parameters = {"location": "location", "scale": "scale"}

    def scipy(self, p):
        return stats.gumbel_r(*p)


def changed(**members):
    return type("Gumbel", (Gumbel,), members)()


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (changed(parameters={}), r"declares parameters = \{\}, but it must map names to kinds"),
        (changed(parameters=["location", "scale"]), "it must map names to kinds"),
        (changed(parameters={"scale": "width"}), "'width'.*; kinds are location, scale, level"),
        (changed(support="integers"), "declares support = 'integers'; valid values: numbers, pos"),
        (changed(scipy=lambda self, p: stats.norm), "does not depend on 'location'.* frozen dist"),
        (changed(scipy=lambda self, p: stats.norm(p[0])), "does not depend on 'scale' at locat"),
        (changed(scipy=lambda self, p: stats.norm(p[0], -p[1])), "has no density at location=0.3"),
        (changed(score=lambda self, y, p: (y,)), "score must return 2 arrays, .*; got 1"),
        (changed(information=lambda self, p: [p[0]] * 3), "information must return 2 arrays"),
    ],
)
def test_own_distributions_that_contradict_themselves(loss, said):
    for y in (Y, right_censored(Y)):
        refused(InvalidParameter, said, BoostingRegressor(loss, **PLAIN).fit, X, y)


def test_metrics_score_pipelines():
    scaled = StandardScaler().fit(X)
    pipeline = make_pipeline(StandardScaler(), clone(MODEL)).fit(X, Y)
    expected = CRPS()(clone(MODEL).fit(scaled.transform(X), Y), scaled.transform(X), Y)
    assert CRPS()(pipeline, X, Y) == expected
    assert CRPS()(make_pipeline(MODEL), X, Y) == CRPS()(MODEL, X, Y)


def test_metrics_refuse_what_they_cannot_score():
    classes = BoostingClassifier(**PLAIN).fit(X, Y > 0)
    for other in (classes, make_pipeline(classes)):
        with pytest.raises(IncompatibleParts, match="BoostingClassifier has no predict_distrib"):
            LogScore()(other, X, Y)
    with pytest.raises(InvalidData, match="y contains NaN in row 7"):
        CRPS()(MODEL, X, np.where(np.arange(300) == 7, np.nan, Y))
    refused(InvalidData, "y must contain numbers", CRPS(), MODEL, X, ["a"] * 300)
    for weight in (-np.ones(300), np.zeros(300), np.ones(5), np.full(300, np.nan)):
        with pytest.raises(InvalidData, match="one number for each of the 300 rows, none of them"):
            CRPS()(MODEL, X, Y, weight)


@pytest.mark.parametrize("coverage", [1, 0, np.nan, "0.9", None, [0.5, 0.9]])
def test_coverages_that_are_no_fraction(coverage):
    found = MODEL.predict_distribution(X)
    for function in (found.interval, IntervalScore, partial(found.interval_score, Y)):
        refused(InvalidParameter, "coverage must be between 0 and 1", function, coverage)


CRPS_OF_NUMBERS = BoostingRegressor(eval_metric="crps")


def test_bad_arguments():
    found, plain = MODEL.predict_distribution(X), BoostingRegressor(**PLAIN).fit(X, Y)
    text = ["a"] * 300
    for error, message, call in (
        (InvalidParameter, "q must be a number between 0 and 1", lambda: found.quantile(1.5)),
        (InvalidData, "^q must contain numbers; got", lambda: found.quantile(text)),
        (InvalidData, "^y must contain numbers; got", lambda: found.cdf(text)),
        (InvalidData, "^y must contain numbers; got", lambda: found.crps(text)),
        (InvalidData, "one number for each of the 300 rows", lambda: found.crps(Y[:5])),
        (InvalidData, "one or several for each of the 300 rows", lambda: found.cdf(Y[:5])),
        (ValueError, "n == -1, must be >= 0", lambda: found.sample(-1)),
        (TypeError, "n must be an instance of int", lambda: found.sample(1.5)),
        (InvalidParameter, "scale must be a positive number", lambda: Normal(0)),
        (InvalidParameter, "must be an integer from 2 to 10", lambda: MixtureOfNormals(1)),
        (IncompatibleParts, "does not define scipy", lambda: DistributionLoss().scipy(())),
        (IncompatibleParts, "predicts no distributions", lambda: plain.predict_distribution(X)),
        (IncompatibleParts, "predicts no distributions", lambda: CRPS_OF_NUMBERS.fit(X, Y)),
    ):
        refused(error, message, call)

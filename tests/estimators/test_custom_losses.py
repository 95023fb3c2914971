"""A user's own loss is as good as a built-in one."""

import numpy as np
import pytest
from tests.cases import LEARNERS, PLAIN, assert_same_model, ids
from tests.own_losses import MyLogLoss, mean
from tests.reference.quantiles import leaf_quantiles

from hilboost import AdaptiveLoss, BoostingClassifier, BoostingRegressor, LeafLoss, Loss
from hilboost.core.errors import HilboostError, IncompatibleParts
from hilboost.core.gradients import Gradients
from hilboost.losses import Huber, Quantile

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = X[:, 0] + RNG.normal(size=200)
LABELS = (Y > 0).astype(int)
SOME = [
    case
    for case in LEARNERS
    if case.id in ("trees-separate", "trees-sketched", "linear", "sklearn-tree")
]


class MySquaredError(Loss):
    def initial_raw(self, target):
        return mean(target)

    def value(self, target, raw):
        return 0.5 * ((target.y - raw) ** 2).sum(axis=1)

    def gradients(self, target, raw):
        return Gradients(target.y - raw)


def whole(target, residuals):
    """Residuals (n,), their weights, and all rows as one leaf."""
    n, weight = len(residuals), target.weight
    return residuals[:, 0], np.ones(n) if weight is None else weight, np.zeros(n, dtype=int)


class MyQuantile(LeafLoss):
    level = 0.3

    def initial_raw(self, target):
        return leaf_quantiles(*whole(target, target.y), 1, self.level)

    def value(self, target, raw):
        residual = target.y - raw
        return np.maximum(self.level * residual, (self.level - 1) * residual).sum(axis=1)

    def gradients(self, target, raw):
        sign = np.sign(target.y - raw)
        return Gradients(np.where(sign > 0, self.level, np.where(sign < 0, self.level - 1, 0.0)))

    def with_curvature(self, target, raw):
        return Quantile(self.level).with_curvature(target, raw)

    def leaf_values(self, target, raw, leaves, n_leaves, columns):
        residuals, weight, _ = whole(target, target.y - raw)
        return leaf_quantiles(residuals, weight, leaves, n_leaves, self.level)[:, None]


@pytest.mark.parametrize(
    ("estimator", "name", "mine", "parameters"),
    [
        (BoostingRegressor, "squared_error", MySquaredError, {}),
        (BoostingClassifier, "log_loss", MyLogLoss, {}),
        (BoostingRegressor, "quantile", MyQuantile, {"quantile": 0.3}),
    ],
)
@pytest.mark.parametrize("learner", SOME, ids=ids(SOME))
@pytest.mark.parametrize(("weighted", "as_object"), [(False, True), (True, False)])
def test_a_copy_of_a_built_in_loss_gives_the_same_model(
    estimator, name, mine, parameters, learner, weighted, as_object
):
    y = LABELS if estimator is BoostingClassifier else Y
    weight = RNG.integers(1, 3, size=200) if weighted and learner.takes_weights else None
    settings = PLAIN | learner.parameters | {"subsample": 0.8}
    built_in = estimator(name, **settings, **parameters).fit(X, y, sample_weight=weight)
    own = estimator(mine() if as_object else mine, **settings).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(own.predict(X), built_in.predict(X))
    np.testing.assert_array_equal(own.history_.train, built_in.history_.train)
    if learner.is_tree:
        assert_same_model(own, built_in)


class MyHuber(AdaptiveLoss):
    """Adapts by handing out another loss."""

    def initial_raw(self, target):
        return Huber().initial_raw(target)

    def value(self, target, raw):
        raise AssertionError("only adapted losses are evaluated")

    def gradients(self, target, raw):
        raise AssertionError("only adapted losses are evaluated")

    def adapted(self, target, raw):
        return Huber().adapted(target, raw)


@pytest.mark.parametrize("cv_folds", [None, 1, 3])
def test_only_adapted_losses_are_evaluated(cv_folds):
    early = {} if cv_folds is None else {"early_stopping": True, "cv_folds": cv_folds}
    built_in = BoostingRegressor("huber", **PLAIN | early, line_search=True).fit(X, Y)
    own = BoostingRegressor(MyHuber, **PLAIN | early, line_search=True).fit(X, Y)
    np.testing.assert_array_equal(own.history_.train[0], built_in.history_.train[0])
    assert own.history_.train[-1] < own.history_.train[0]


def with_changes(**changes):
    """A loss of which some methods return something else."""
    methods = {name: staticmethod(function) for name, function in changes.items()}
    return type("Changed", (MySquaredError,), methods)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda t, raw: Gradients((t.y - raw)[:, 0]),
        lambda t, raw: Gradients((t.y - raw)[:-1]),
        lambda t, raw: Gradients(t.y - raw, np.ones(len(raw))),
        lambda t, raw: Gradients(np.hstack([raw, raw])),
    ],
    ids=["flat", "short", "flat-hessian", "wide"],
)
@pytest.mark.parametrize("n", [200, 40_000])
def test_gradients_of_a_wrong_shape_are_refused(wrong, n):
    rows = np.arange(n) % 200
    model = BoostingRegressor(with_changes(gradients=wrong), **PLAIN | {"n_estimators": 1})
    with pytest.raises(IncompatibleParts, match=r"Changed.gradients returned a .* array of shape"):
        model.fit(X[rows], Y[rows])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda t, raw: (t.y - raw) ** 2,
        lambda t, raw: ((t.y - raw) ** 2).mean(),
        lambda t, raw: ((t.y - raw) ** 2)[:-1, 0],
    ],
    ids=["column", "mean", "short"],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_values_of_a_wrong_shape_are_refused(wrong, weighted):
    weight = np.arange(1, 201) if weighted else None
    model = BoostingRegressor(with_changes(value=wrong), **PLAIN)
    with pytest.raises(HilboostError, match=r"value"):
        model.fit(X, Y, sample_weight=weight)


def broken(target, raw):
    raise RuntimeError("from the loss")


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"gradients": lambda t, raw: Gradients(raw * np.nan)}, HilboostError, "gradients"),
        ({"gradients": lambda t, raw: Gradients(raw, raw - 9)}, HilboostError, "hessian"),
        ({"initial_raw": lambda t: float(t.y.mean())}, HilboostError, "initial_raw"),
        ({"gradients": broken}, RuntimeError, "from the loss"),
    ],
)
def test_other_mistakes(changes, error, match):
    with pytest.raises(error, match=match):
        BoostingRegressor(with_changes(**changes), **PLAIN).fit(X, Y)


def test_gradients_of_other_dtypes_and_layouts_are_taken():
    expected = BoostingRegressor(**PLAIN).fit(X, np.round(Y)).predict(X)
    for change in (np.asfortranarray, lambda a: np.broadcast_to(a[:, 0:1], a.shape)):
        own = with_changes(gradients=lambda t, raw, c=change: Gradients(c(t.y - raw)))
        model = BoostingRegressor(own, **PLAIN).fit(X, np.round(Y))
        np.testing.assert_array_equal(model.predict(X), expected)
    single = with_changes(gradients=lambda t, raw: Gradients((t.y - raw).astype(np.float32)))
    model = BoostingRegressor(single, **PLAIN).fit(X, np.round(Y))
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.slow
def test_it_may_declare_that_a_kernel_machine_joins_its_trees():
    class Joining(MySquaredError):
        joins_kernel_machine = quadratic = True

    target = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    own, alone, built_in = (
        BoostingRegressor(loss=loss, n_estimators=40, random_state=0).fit(X, target)
        for loss in (Joining(), MySquaredError(), "squared_error")
    )
    assert own.parts_["kernel"].weight > 0.5
    np.testing.assert_allclose(own.predict(X), built_in.predict(X), atol=1e-3)
    assert alone.fitted_.parts is None

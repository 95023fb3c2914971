"""Fits in two parts with learners whose stages do not determine their state: the same bits."""

import pickle
from copy import copy

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor
from tests.model.editing import contents, edit
from tests.refusals import refused
from tests.reloaded import reloaded

from hilboost import BoostingClassifier, BoostingRegressor, KernelBoostingRegressor
from hilboost.boosting import history, loop
from hilboost.callbacks import Checkpoint
from hilboost.core.errors import FitWarning, HilboostError, InvalidData, InvalidParameter
from hilboost.kernels import Gaussian, Linear, OnColumns

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(150, 3))
Y = np.sin(2 * X[:, 0]) + (X[:, 1] > 0.3) + 0.5 * X[:, 2] + RNG.normal(size=150) / 10
LABELS = np.digitize(Y, [0.0, 1.0])
WEIGHT = 1.0 + RNG.integers(3, size=150)
N = 7
KEPT = {"n_estimators": N, "random_state": 0, "early_stopping": False}


def machine(kernel=Gaussian(1.0), **parameters):  # noqa: B008
    return KernelBoostingRegressor(kernel=kernel, regularization=0.1, **parameters)


SPARSE, FULL = machine(n_basis=15), machine(stages="full")
ALL = ["tree", SPARSE, "linear"]
NO_TRIAL_RUNS = {"max_features": 1.0, "max_leaf_nodes": 31}
KERNELS = [Gaussian(1.0), OnColumns(Linear(), [0])]
CASES = {
    "list": {"learner": ALL},
    "list, folds": {"learner": ALL, "early_stopping": True, "cv_folds": 2} | NO_TRIAL_RUNS,
    "list, held-out rows": {"learner": ALL, "early_stopping": True, "cv_folds": 1},
    "list, classes": {"learner": ALL, "loss": "log_loss", "subsample": 0.8},
    "list, huber": {"learner": ["linear", SPARSE], "loss": "huber", "learning_rate": 0.5},
    "list, full": {"learner": ["tree", FULL, Ridge()]},
    "list, full, classes": {"learner": ["linear", FULL], "loss": "log_loss"},
    "list, scales": {
        "learner": ["linear", machine(n_basis=9, length_scale_factors=[0.5, 1.0, 2.0])]
    },
    "list, kernels": {"learner": ["linear", machine(KERNELS, n_basis=9)]},
    "sparse": {"learner": SPARSE, "loss": "absolute_error"},
    "joint": {"learner": machine(n_basis=9, refit_every=2)},
    "reweighted": {
        "learner": machine(n_basis=9, subset_size=60, reweight=True, length_scale_factors=[0.5, 1])
    },
    "reweighted kernels": {"learner": machine(KERNELS, n_basis=9, reweight=True)},
    "block": {"learner": machine(stages="block", n_basis=40)},
    "full": {"learner": FULL},
    "full, quantiles": {"learner": FULL, "loss": "quantile", "quantile": [0.2, 0.8]},
    "full, kernels": {"learner": machine(KERNELS, stages="full")},
    "linear": {"learner": "linear", "loss": "huber"},
}
CHOICE = {"learner": ["tree", KernelBoostingRegressor(n_basis=15), "linear"], "cv_folds": 2}


def build(case, **parameters):
    settings = KEPT | case | parameters
    if settings.get("loss") == "log_loss":
        return BoostingClassifier(**settings)
    return BoostingRegressor(**settings)


def fit(model, *callbacks, **data):
    y = LABELS if isinstance(model, BoostingClassifier) else 1000 * Y
    return model.fit(X, y, sample_weight=WEIGHT, callbacks=callbacks, **data)


def until(stage):
    return lambda event: event.stage == stage


def assert_same_fit(one, other):
    np.testing.assert_array_equal(one.predict_raw(X), other.predict_raw(X))
    np.testing.assert_array_equal(one.predict_raw(X + 0.1), other.predict_raw(X + 0.1))
    np.testing.assert_array_equal(one.history_.train, other.history_.train)
    if other.history_.validation is not None:
        np.testing.assert_array_equal(one.history_.validation, other.history_.validation)
    for stage, same in zip(one.model_.stages, other.model_.stages, strict=True):
        for term, own in zip(stage.terms, same.terms, strict=True):
            assert term.learner == own.learner
            np.testing.assert_array_equal(term.coefficient, own.coefficient)


@pytest.fixture(scope="module")
def wholes():
    return {}


def whole(wholes, name):
    if name not in wholes:
        wholes[name] = fit(build(CASES[name]))
    return wholes[name]


# Two parts


@pytest.mark.parametrize("name", CASES)
def test_a_warm_start_is_the_whole_fit(name, wholes):
    model = fit(build(CASES[name], n_estimators=3, warm_start=True))
    assert_same_fit(fit(model.set_params(n_estimators=N)), whole(wholes, name))


@pytest.mark.parametrize("name", CASES)
def test_a_fit_resumed_at_every_stage_is_the_whole_fit(name, wholes, tmp_path):
    checkpoint = Checkpoint(tmp_path / "c")
    for stage in range(1, N):
        part = fit(build(CASES[name]), checkpoint, until(stage))
        assert len(part.history_.train) == stage + 1
    seen = []
    assert_same_fit(fit(build(CASES[name]), checkpoint, seen.append), whole(wholes, name))
    assert [event.stage for event in seen] == [N]
    assert_same_fit(fit(build(CASES[name]), checkpoint, seen.append), whole(wholes, name))
    assert len(seen) == 1


@pytest.mark.slow
def test_kernels_that_the_first_stage_chose(tmp_path):
    alone = fit(build(CHOICE))
    model = fit(build(CHOICE, n_estimators=2, warm_start=True))
    assert_same_fit(fit(model.set_params(n_estimators=N)), alone)
    fit(build(CHOICE), Checkpoint(tmp_path / "c"), until(2))
    assert_same_fit(fit(build(CHOICE), Checkpoint(tmp_path / "c")), alone)


def test_pickled_models_and_any_regressor_go_on_in_memory():
    case = {"learner": ["linear", DecisionTreeRegressor(max_depth=3, max_features=1), SPARSE]}
    model = fit(build(case, n_estimators=3, warm_start=True))
    model = pickle.loads(pickle.dumps(model)).set_params(n_estimators=N)
    assert_same_fit(fit(model), fit(build(case)))


def test_only_models_that_are_to_go_on_keep_their_state():
    assert fit(build({"learner": "tree"}, warm_start=True)).fitted_.kept is None
    assert fit(build({"learner": ALL})).fitted_.kept is None
    model = fit(build({"learner": ALL}, warm_start=True))
    assert model.fitted_.kept.n_stages == N
    assert model.learner_part("linear").fitted_.kept is None
    assert reloaded(model).fitted_.kept is None


# Ends


STOPPING = {"learner": ALL, "early_stopping": True, "n_estimators": 12, "learning_rate": 0.8}
HELD = {
    "X_val": X[::2] + 1e-9,
    "y_val": 1000 * (0.7 * Y[::2] + np.random.default_rng(2).normal(size=75)),
}


def test_early_stopping_keeps_the_state_of_the_best_stage(tmp_path):
    patient = {"n_iter_no_change": 12}
    alone = fit(build(STOPPING | patient), **HELD)
    stopped = build(STOPPING, n_iter_no_change=2, warm_start=True)
    checkpoint = Checkpoint(tmp_path / "c")
    fit(stopped, checkpoint, **HELD)
    assert 0 < stopped.n_estimators_ < len(stopped.history_.train) - 1 < 12
    # The file holds that state too.
    over = fit(build(STOPPING, n_iter_no_change=2, warm_start=True), checkpoint, **HELD)
    for model in (stopped, over):
        assert_same_fit(fit(model.set_params(**patient), **HELD), alone)


@pytest.mark.parametrize(
    ("module", "where"), [(loop, "add_stage"), (history, "mean_loss"), (loop, "_take_snapshot")]
)
@pytest.mark.parametrize("name", ["list, folds", "full, quantiles"])
def test_a_fit_interrupted_inside_a_stage(module, where, name, wholes, monkeypatch, tmp_path):
    function, calls = getattr(module, where), []

    def interrupted(*arguments):
        calls.append(where)
        if len(calls) == 7:
            raise KeyboardInterrupt
        return function(*arguments)

    model = build(CASES[name], warm_start=True)
    with monkeypatch.context() as patch:
        patch.setattr(module, where, interrupted)
        with pytest.warns(FitWarning), pytest.raises(KeyboardInterrupt):
            fit(model, Checkpoint(tmp_path / "c"))
    assert 0 < len(model.history_.train) - 1 < N
    assert_same_fit(fit(model), whole(wholes, name))
    assert_same_fit(fit(build(CASES[name]), Checkpoint(tmp_path / "c")), whole(wholes, name))


# Refusals


def test_a_first_fit_that_kept_no_state():
    for case, what in ((ALL, "a model of several learners"), (SPARSE, "a kernel machine")):
        model = fit(build({"learner": case}, n_estimators=2))
        model.set_params(n_estimators=4, warm_start=True)
        refused(InvalidData, f"{what} cannot be continued from the.*set warm", fit, model)


OTHER_LISTS = [ALL[::-1], ALL[:2], ["tree", machine(n_basis=14), "linear"]]


def test_a_warm_start_with_other_parts():
    model = fit(build({"learner": ALL}, n_estimators=2, warm_start=True))
    model.set_params(n_estimators=4)
    for changed in (*({"learner": learner} for learner in OTHER_LISTS), {"loss": "huber"}):
        other = copy(model).set_params(**changed)
        refused(InvalidData, f"this fit has another {[*changed][0]}; pass the same", fit, other)


def test_a_warm_start_with_other_data():
    model = fit(build({"learner": ALL}, n_estimators=2, warm_start=True))
    model.set_params(n_estimators=4)
    with pytest.raises(InvalidData, match=r"but this fit has another X, y, sample_weight; pass"):
        model.fit(X[1:], 1000 * Y[1:], sample_weight=WEIGHT[1:])
    with pytest.raises(InvalidData, match=r"but this fit has another y; pass the same"):
        model.fit(X, Y, sample_weight=WEIGHT)
    # Other learners have no state, and take up other data by their stages.
    line = fit(build({"learner": "linear"}, n_estimators=2, warm_start=True))
    line.set_params(n_estimators=4).fit(X[1:], Y[1:])
    assert line.n_estimators_ == 4


def test_the_checkpoint_of_another_list(tmp_path):
    fit(build({"learner": ALL}), Checkpoint(tmp_path / "c"), until(2))
    for learner in OTHER_LISTS:
        with pytest.raises(
            InvalidParameter, match=r"the checkpoint of a fit with learner=\['tree'"
        ):
            fit(build({"learner": learner}), Checkpoint(tmp_path / "c"))


def test_a_damaged_state(tmp_path):
    path = tmp_path / "c"
    fit(build({"learner": SPARSE}), Checkpoint(path), until(3))
    arrays, whole = contents(path)[0], path.read_bytes()
    values = [name for name in arrays if name.startswith("value.") and arrays[name].ndim == 2]
    assert len(values) > 2
    for change in (
        *({"arrays": {name: arrays[name][:-1]}} for name in values),
        {"header": {"snapshots": [[3, []]]}},
        {"header": {"snapshots": []}},
    ):
        path.write_bytes(whole)
        edit(path, **change)
        refused(HilboostError, "damaged", fit, build({"learner": SPARSE}), Checkpoint(path))

"""The model of AutoGluon and TabArena in ``packaging/tabarena``, used as its page says."""

import pickle
import sys
from importlib import import_module
from pathlib import Path
from shutil import copy, copytree

import numpy as np
import pytest

from hilboost import BoostingClassifier, BoostingRegressor

pd = pytest.importorskip("pandas")
pytest.importorskip("autogluon.core")

from autogluon.core.utils.exceptions import TimeLimitExceeded  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning")
FOLDER = Path(__file__).parents[2] / "packaging" / "tabarena"
ROWS = 400
FEW = {"learner": "tree", "n_estimators": 20, "learning_rate": 0.3}
TYPES = ("regression", "binary", "multiclass")


@pytest.fixture(scope="module")
def model_class(tmp_path_factory):
    folder = tmp_path_factory.mktemp("copied")
    copy(FOLDER / "model.py", folder / "hilboost_model.py")
    sys.path.insert(0, str(folder))
    yield import_module("hilboost_model").HilboostModel
    sys.path.remove(str(folder))


@pytest.fixture
def make(model_class, tmp_path):
    def make(problem_type, **hyperparameters):
        return model_class(str(tmp_path), "one", problem_type, None, hyperparameters)

    return make


def table(problem_type, rows=ROWS):
    """Numbers with missing values, a column of categories, and a target of AutoGluon."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, 3)), columns=["a", "b", "c"])
    X["town"] = pd.Categorical(rng.choice(["Ghent", "Namur", None], rows))
    raw = X["a"] + 2 * (X["town"] == "Ghent") + 0.2 * rng.normal(size=rows)
    X.loc[::7, "b"] = np.nan
    cuts = {"regression": [], "binary": [0.7], "multiclass": [0.0, 1.5]}[problem_type]
    return X, pd.Series(np.digitize(raw, cuts) if cuts else raw)


def error(model, X, y):
    """Relative to that of a constant: squared error, or share of wrong classes."""
    predicted = model.predict(X)
    if model.problem_type == "regression":
        return np.mean((y - predicted) ** 2) / np.var(y)
    return np.mean(y != predicted) / np.mean(y != y.mode()[0])


@pytest.mark.parametrize("problem_type", TYPES)
@pytest.mark.parametrize("held_out", [True, False], ids=["validation", "folds"])
def test_each_problem_type_is_fitted(make, problem_type, held_out):
    X, y = table(problem_type)
    given = {"X_val": X[200:300], "y_val": y[200:300]} if held_out else {}
    model = make(problem_type).fit(X=X[:200], y=y[:200], num_cpus=1, num_gpus=0, **given)
    assert error(model, X[300:], y[300:]) < 0.4
    kind = BoostingRegressor if problem_type == "regression" else BoostingClassifier
    assert type(model.model) is kind
    assert (model.model.n_jobs, model.model.random_state) == (1, 0)
    assert list(model.model.feature_names_in_) == list(X)
    shape = (100, 3) if problem_type == "multiclass" else (100,)
    assert model.predict_proba(X[300:]).shape == shape


def test_the_validation_rows_of_autogluon_stop_the_fit(make):
    X, y = table("regression")
    held_out = {"X_val": X[300:], "y_val": y[300:]}
    model = make("regression", **FEW).fit(X=X[:300], y=y[:300], **held_out)
    own = BoostingRegressor(**FEW, random_state=0).fit(X[:300], y[:300], **held_out)
    assert np.array_equal(model.model.history_.validation, own.history_.validation)
    assert np.array_equal(model.predict(X), own.predict(X).astype(np.float32))


def test_a_class_may_be_missing_among_the_validation_rows(make):
    X, y = table("multiclass")
    held_out = (np.arange(ROWS) >= 300) & (y < 2)
    model = make("multiclass", **FEW).fit(
        X=X[:300], y=y[:300], X_val=X[held_out], y_val=y[held_out]
    )
    assert model.predict_proba(X).shape == (ROWS, 3)


@pytest.mark.parametrize("new", [{"town": pd.Categorical(["Arlon"] * ROWS)}, {"a": np.nan}])
def test_new_levels_and_missing_values_are_predicted(make, new):
    X, y = table("binary")
    assert np.isfinite(make("binary", **FEW).fit(X=X, y=y).predict_proba(X.assign(**new))).all()


@pytest.mark.filterwarnings("ignore::hilboost.core.errors.FitWarning")
def test_a_time_limit_is_a_budget_with_a_reserve(make):
    X, y = table("regression")
    assert 14 < make("regression").fit(X=X, y=y, time_limit=20).model.time_budget <= 16


def test_no_fit_begins_without_time(make):
    X, y = table("regression")
    model = make("regression")
    model.initialize(X=X, y=y)
    with pytest.raises(TimeLimitExceeded):
        model._fit(X, y, time_limit=0)


def test_hyperparameters_are_those_of_hilboost(make):
    X, y = table("binary")
    model = make("binary", **FEW, max_leaf_nodes=5, random_state=3, n_jobs=1).fit(X=X, y=y)
    fitted = model.model.get_params()
    assert (fitted["max_leaf_nodes"], fitted["random_state"], fitted["n_jobs"]) == (5, 3, 1)


def test_rows_without_weight_change_nothing(make):
    X, y = table("regression")
    few, off = slice(0, 200), pd.Series(np.arange(ROWS) < 200).astype(float)
    weighted = make("regression", **FEW, early_stopping=False).fit(
        X=X, y=y.where(off > 0, 99.0), sample_weight=off
    )
    fewer = make("regression", **FEW, early_stopping=False).fit(X=X[few], y=y[few])
    assert np.allclose(weighted.predict(X), fewer.predict(X))


@pytest.mark.parametrize("problem_type", TYPES)
def test_pickles_predict_the_same(make, model_class, problem_type):
    X, y = table(problem_type)
    model = make(problem_type, **FEW).fit(X=X, y=y)
    expected = model.predict_proba(X)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), expected)
    assert np.array_equal(model_class.load(model.save()).predict_proba(X), expected)


@pytest.mark.parametrize("problem_type", TYPES)
def test_the_environment_is_warmed_up_without_data(model_class, problem_type, capsys):
    model_class.warmup(problem_type=problem_type, num_cpus=1, num_gpus=0, hyperparameters={})
    assert capsys.readouterr().out == ""


def test_memory_grows_with_rows_and_classes(model_class):
    def bytes_of(rows, classes):
        X = pd.DataFrame(np.zeros((rows, 4), np.float32))
        return model_class.estimate_memory_usage_static(
            X=X, problem_type="multiclass", num_classes=classes, hyperparameters={}
        )

    assert 1e9 < bytes_of(100, 3) < bytes_of(10_000, 3) < bytes_of(10_000, 30) < 4e9
    assert bytes_of(200_000, 2) < bytes_of(100_000, 2) * 1.2


def test_tabarena_finds_the_model(tmp_path, monkeypatch):
    pytest.importorskip("tabarena.utils.config_utils")
    copytree(FOLDER, tmp_path / "hilboost_in_tabarena")
    monkeypatch.syspath_prepend(tmp_path)
    package = import_module("hilboost_in_tabarena")
    info = package.hilboost_info
    assert info.search_space is package.gen_hilboost
    assert info.method_metadata is package.hilboost_method_metadata
    X, y = table("multiclass")
    for config in package.gen_hilboost.get_searcher_configs(3):
        given = {**config, "n_estimators": 5}
        model = info.model_cls(str(tmp_path), "one", "multiclass", None, given).fit(X=X, y=y)
        assert error(model, X, y) < 1

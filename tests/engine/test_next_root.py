"""Histograms that follow from the tree before are those of all rows, and change no model."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from tests.workers.together import fit_together, partitions_of, saved

from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.engine import buffers, next_root, separate, tree_data
from hilboost.engine import gradients as packing
from hilboost.engine import stage as fitting
from hilboost.engine.next_root import NextRoot
from hilboost.engine.plan import plan_for
from hilboost.estimators import base

N = 4_000
write = NextRoot.write


def separate_from(monkeypatch, n_trees):
    """Each tree is grown by one thread if a stage has so many of them, ``None``: never."""

    def plan(*sizes):
        return replace(plan_for(*sizes), fewest_separate=n_trees)

    monkeypatch.setattr(tree_data, "plan_for", plan)


@pytest.fixture
def rounding(monkeypatch):
    """Leaf values of small tables are rounded, too."""
    monkeypatch.setattr(next_root, "FEWEST_ROWS", 1000)


@pytest.fixture
def small(rounding, monkeypatch):
    """Small tables are treated as large ones."""
    monkeypatch.setattr(next_root, "_FEWEST_ROWS_PER_LEAF", 1)
    monkeypatch.setattr(packing, "_FEWEST_ROWS_COMPACT", 1000)
    separate_from(monkeypatch, None)
    # With few rows, gradients have more than 32 bits: take those of a million rows.
    layout = packing.layout_of.__wrapped__

    def narrow(*given):
        found = layout(*given)
        if found.packing.steps[1] == 0:
            return found._replace(gradient_room=found.gradient_room * 2.0**-16)
        rooms = {"gradient_room": found.gradient_room, "hessian_room": found.hessian_room}
        return found._replace(**{name: room * 2.0**-12 for name, room in rooms.items()})

    for module in (packing, separate):
        monkeypatch.setattr(module, "layout_of", narrow)
    monkeypatch.setattr(packing, "_MOST_ROWS_EXACT", 1000)


def draw(kind="numbers", n=N):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 9))
    X[:, 1], X[:, 2] = np.round(X[:, 1]), 3.0
    X[rng.random(n) < 0.1, 4] = np.nan
    X[:, 5] = rng.integers(5, size=n)
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 3]) + (X[:, 5] == 2) + 0.5 * rng.normal(size=n)
    if kind == "float32":
        y = y.astype(np.float32).astype(float)
    elif kind == "halves":  # gradients halfway between two integers, whose mean is zero
        y = np.round(y[: n // 2] * 2.0**27) * 2.0**-27
        y = np.concatenate([y, -y])
    elif kind == "counts":
        y = np.round(5 * y)
    elif kind == "far away":
        y += 1e9
    elif kind == "outlier":
        y[7] = 100.0
    return X, y


def fit(X, y, weight=None, n_jobs=2, kind=BoostingRegressor, **parameters):
    given = {"n_estimators": 12, "early_stopping": False, "learner": "tree", **parameters}
    return kind(random_state=0, n_jobs=n_jobs, **given).fit(X, y, sample_weight=weight)


def count_written(monkeypatch, is_allowed=True):
    """A list that notes for each tree whether its root was written."""
    noted = []

    def noting(self, *arguments):
        noted.append(write(self, *arguments) if is_allowed else False)
        return noted[-1]

    monkeypatch.setattr(NextRoot, "write", noting)
    return noted


def assert_written_roots_change_nothing(monkeypatch, X, y, **parameters):
    noted = count_written(monkeypatch)
    carried = fit(X, y, **parameters)
    count_written(monkeypatch, is_allowed=False)
    direct = fit(X, y, **parameters)
    np.testing.assert_array_equal(carried.model_.predict_raw(X), direct.model_.predict_raw(X))
    return noted


@pytest.mark.parametrize("kind", ["numbers", "float32", "halves", "counts", "far away", "outlier"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_targets(kind, n_jobs, small, monkeypatch):
    X, y = draw(kind)
    assert sum(assert_written_roots_change_nothing(monkeypatch, X, y, n_jobs=n_jobs)) > 6


@pytest.mark.parametrize(
    "parameters",
    [
        {"categorical_features": [5]},
        {"monotonic_cst": [1] + 8 * [0]},
        {"interaction_cst": [[0, 1, 3], [2, 4, 5, 6, 7, 8]]},
        {"max_features": 0.5},
        {"l2_regularization": 7.0},
        {"learning_rate": 1.0},
        {"min_samples_leaf": 60},
        {"max_bins": 7},
    ],
    ids=str,
)
def test_parameters(parameters, small, monkeypatch):
    assert any(assert_written_roots_change_nothing(monkeypatch, *draw(), **parameters))


def test_units_change_from_tree_to_tree(small, monkeypatch):
    noted = assert_written_roots_change_nothing(
        monkeypatch, *draw(), n_estimators=30, learning_rate=0.9
    )
    assert any(noted[1:])
    assert not all(noted[1:])


@pytest.mark.parametrize("parameters", [{"max_depth": 3}, {"max_leaf_nodes": 2}], ids=str)
def test_leaves_are_summed_that_no_split_needs(parameters, small, monkeypatch):
    """A fit to a million rows went on without written roots after a tree with such a leaf."""
    noted = assert_written_roots_change_nothing(monkeypatch, *draw(), **parameters)
    assert len(noted) == 12
    assert sum(noted) > 8


def test_leaves_without_histograms_end_it(small, monkeypatch):
    monkeypatch.setattr(buffers, "HISTOGRAM_BUDGET", 0)
    noted = assert_written_roots_change_nothing(monkeypatch, *draw(), max_leaf_nodes=6)
    assert noted == [False]


@pytest.fixture
def sorts(monkeypatch):
    """The first trees sort the rows of small tables, too."""
    monkeypatch.setattr("hilboost.engine.row_order._FEWEST_BYTES", 0)


def test_sorted_rows(small, sorts, monkeypatch):
    noted = assert_written_roots_change_nothing(monkeypatch, *draw(n=70_000))
    assert len(noted) == 10  # two trees sort the rows before
    assert sum(noted) > 6


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("is_sorted", [False, True])
def test_gradients_of_two_classes_stay_as_they_are(n_jobs, is_sorted, small, monkeypatch, request):
    if is_sorted:
        request.getfixturevalue("sorts")
    X, y = draw(n=70_000 if is_sorted else N)
    given = {"kind": BoostingClassifier, "n_jobs": n_jobs, "learning_rate": 0.05}
    noted = assert_written_roots_change_nothing(monkeypatch, X, (y > 0).astype(int), **given)
    assert sum(noted) > 6


@pytest.mark.parametrize(
    ("loss", "is_written"), [("absolute_error", True), ("poisson", False), ("huber", False)]
)
def test_other_losses(loss, is_written, small, monkeypatch):
    X, y = draw("counts")
    noted = assert_written_roots_change_nothing(
        monkeypatch, X, np.abs(y), loss=loss, n_estimators=30, learning_rate=0.05
    )
    assert any(noted) == is_written
    assert len(noted) == 30 if is_written else len(noted) < 30  # it ends when it does not help


@pytest.mark.parametrize(
    "parameters",
    [
        {"categorical_features": [5]},
        {"max_features": 0.5},
        {"max_leaf_nodes": 300},
        {"max_bins": 7},
    ],
    ids=str,
)
def test_parameters_of_classifiers(parameters, small, monkeypatch):
    X, y = draw()
    given = {"kind": BoostingClassifier, "learning_rate": 0.05, **parameters}
    noted = assert_written_roots_change_nothing(monkeypatch, X, (y > 0).astype(int), **given)
    assert any(noted)


@pytest.mark.parametrize("n_found", [0, 10, N])
def test_unexpected_gradients(n_found, small, monkeypatch):
    note_steps = NextRoot.note_steps

    def wrong(self, steps):
        note_steps(self, steps + (np.arange(len(steps)) == 1))

    monkeypatch.setattr(next_root, "_FOUND_ONE_IN", N // max(n_found, 1))
    monkeypatch.setattr(next_root, "_FOUND_IN_FEW", 1)
    monkeypatch.setattr(next_root, "_MOST_FAILURES", 2)
    monkeypatch.setattr(NextRoot, "note_steps", wrong)
    X, y = draw()
    noted = assert_written_roots_change_nothing(monkeypatch, X, y)
    assert any(noted) == (n_found == N)
    assert len(noted) == 12 if n_found == N else 3 <= len(noted) < 12


def test_threads_and_separate_growth(small, monkeypatch):
    X, y = draw()
    noted = count_written(monkeypatch)
    found = [fit(X, y, n_jobs=n_jobs).model_.predict_raw(X) for n_jobs in (1, 2)]
    assert any(noted)
    separate_from(monkeypatch, 1)
    n_trees = len(noted)
    found.append(fit(X, y).model_.predict_raw(X))
    assert len(noted) == n_trees
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_stages_in_one_call_round_values_as_well(n_threads, weighted, small, monkeypatch):
    X, y = draw()
    weight = np.random.default_rng(1).integers(1, 4, size=N).astype(float) if weighted else None
    expected = fit(X, y, weight, n_estimators=30).model_.predict_raw(X)
    limits = {"fewest_separate": n_threads, "carries_root": False}
    monkeypatch.setattr(tree_data, "plan_for", lambda *given: replace(plan_for(*given), **limits))
    monkeypatch.setattr(base, "threads_for", lambda *given: n_threads)
    n_calls, grow_stages = [], fitting.RequestedStages.fitted

    def noting(self, trees):
        n_calls.append(len(trees))
        return grow_stages(self, trees)

    monkeypatch.setattr(fitting.RequestedStages, "fitted", noting)
    found = fit(X, y, weight, n_estimators=30).model_.predict_raw(X)
    assert sum(n_calls) == 30
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("separate", [False, True])
def test_weights_repeat_rows(separate, small, monkeypatch):
    separate_from(monkeypatch, 1 if separate else None)
    X, y = draw(n=1_500)
    weight = np.random.default_rng(1).integers(1, 4, size=len(y)).astype(float)
    noted = count_written(monkeypatch)
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    repeated = fit(X[rows], y[rows])
    n_trees = len(noted)
    weighted = fit(X, y, weight)
    assert len(noted) == n_trees  # roots of weighted rows are not carried
    np.testing.assert_array_equal(weighted.model_.predict_raw(X), repeated.model_.predict_raw(X))


def test_workers(small):
    X, y = draw()
    model = BoostingRegressor(
        n_estimators=6, early_stopping=False, learner="tree", random_state=0, n_jobs=2
    )
    found = fit_together(model, partitions_of(X, y, cuts=[1500]), owners=[0, 1])
    assert {saved(one) for one in found} == {saved(clone(model).fit(X, y))}


def test_leaves_add_multiples_of_a_power_of_two(small):
    model = fit(*draw())
    for stage in model.model_.stages:
        (term,) = stage.terms
        outputs = np.ldexp(term.coefficient * term.model.values, 24)
        np.testing.assert_allclose(outputs, np.rint(outputs), atol=1e-6)


@pytest.mark.parametrize(
    "parameters",
    [
        {"subsample": 0.5},
        {"n_shards": 2},
        {"cv_folds": 2, "early_stopping": True},
        {"loss": "absolute_error"},
        {"growth": "symmetric"},
    ],
    ids=str,
)
def test_other_fits_are_not_rounded(parameters, request):
    X, y = draw()
    plain = fit(X, y, **parameters).model_.predict_raw(X)
    request.getfixturevalue("rounding")
    np.testing.assert_array_equal(fit(X, y, **parameters).model_.predict_raw(X), plain)


def test_small_learning_rates_keep_their_digits(request):
    X, y = draw()
    y -= y.mean()
    plain = fit(X, y, learning_rate=1e-9).model_.predict_raw(X)
    request.getfixturevalue("rounding")
    found = fit(X, y, learning_rate=1e-9).model_.predict_raw(X)
    np.testing.assert_allclose(found, plain, rtol=0, atol=1e-6 * np.abs(plain).max())


def test_values_of_leaves_from_packed_sums(small, monkeypatch):
    X, y = draw()
    by_totals, of_fits = fitting.steps_of_totals, []

    def noting(*given):
        of_fits.append(by_totals(*given))
        return of_fits[-1] and len(of_fits) <= 12

    monkeypatch.setattr(fitting, "steps_of_totals", noting)
    found, exact = (fit(X, y, l2_regularization=3.0).model_.predict_raw(X) for _ in range(2))
    assert len(of_fits) == 24
    assert all(of_fits)
    np.testing.assert_allclose(found, exact, atol=1e-6)

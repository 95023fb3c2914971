"""The additive model: sums in the order of the stages, and means of models."""

import pickle

import numpy as np
import pytest

from hilboost import BoostingClassifier
from hilboost.core.base_model import BaseModel, Stage, Term
from hilboost.model import AdditiveModel, mean_of


class Linear(BaseModel):
    def __init__(self, slopes):
        self.slopes = np.asarray(slopes, dtype=float)

    def predict_raw(self, X):
        return X @ self.slopes


class Doubled(Linear):
    def predict_raw(self, X):
        return 2 * super().predict_raw(X)


X = np.random.default_rng(0).normal(size=(9, 2))


def stage(*models, coefficient=0.5):
    return Stage(
        tuple(Term(m, slice(k, k + 1), np.array([coefficient])) for k, m in enumerate(models))
    )


def build(seed, n_stages=3):
    rng = np.random.default_rng(seed)
    stages = [
        stage(Linear(rng.normal(size=(2, 1))), Doubled(rng.normal(size=(2, 1))))
        for _ in range(n_stages)
    ]
    return AdditiveModel(rng.normal(size=2), tuple(stages))


def by_hand(model):
    raw = np.tile(model.initial_raw, (len(X), 1))
    for s in model.stages:
        for part in s.terms:
            raw[:, part.columns] += part.coefficient * part.model.predict_raw(X)
    return raw


def test_stages_are_added_up():
    model = build(0)
    np.testing.assert_allclose(model.predict_raw(X), by_hand(model), rtol=1e-12)
    np.testing.assert_array_equal(model.predict_raw(X), model.predict_raw(X))


@pytest.mark.parametrize("n_rows", [5, 300])
def test_stages_are_added_to_earlier_ones(n_rows):
    """Trees that are added later give the same bits, whether rows walk or not."""
    table = np.random.default_rng(1).normal(size=(300, 3))
    settings = {"learner": "tree", "n_estimators": 12, "early_stopping": False}
    fitted = BoostingClassifier(**settings).fit(table, np.arange(300) % 3 + (table[:, 0] > 0))
    model, rows = fitted.model_, table[:n_rows]
    for n in (0, 1, 5, 12):
        raw = model.first(n).predict_raw(rows)
        AdditiveModel(model.initial_raw, model.stages[n:]).add_stages(raw, rows, 1)
        np.testing.assert_array_equal(raw, model.predict_raw(rows))
    assert model.n_basis == 0


def test_stages_one_after_the_other():
    model = build(0)
    staged = [raw.copy() for raw in model.staged_raw(X)]
    for k, raw in enumerate(staged, start=1):
        shorter = AdditiveModel(model.initial_raw, model.stages[:k])
        np.testing.assert_allclose(raw, by_hand(shorter), rtol=1e-12)


def test_a_model_without_stages_is_its_start():
    model = AdditiveModel(np.array([1.0, 2.0]), ())
    np.testing.assert_array_equal(model.predict_raw(X), np.tile([1.0, 2.0], (9, 1)))
    assert list(model.staged_raw(X)) == []


@pytest.mark.parametrize("n_models", [1, 2, 3])
def test_mean_of_models(n_models):
    models = [build(seed) for seed in range(n_models)]
    expected = np.mean([model.predict_raw(X) for model in models], axis=0)
    together = mean_of(models)
    np.testing.assert_allclose(together.predict_raw(X), expected, rtol=1e-12)
    assert len(together.stages) == 3


def test_models_of_different_lengths_have_no_mean():
    with pytest.raises(ValueError, match="zip"):
        mean_of([build(0, 2), build(1, 3)])


def test_pickled_models_predict_the_same():
    model = build(0)
    expected = model.predict_raw(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_raw(X), expected)

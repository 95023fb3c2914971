"""Calibrated sets of every classifier: against naive twins, and what they promise."""

import numpy as np
import pytest
from tests.cases import PLAIN
from tests.estimators.test_prediction_intervals import FOLDS, KERNEL, SUBSETS, likely
from tests.reference import conformal as naive
from tests.refusals import refused

from hilboost import BoostingClassifier, KernelBoostingClassifier, SparseKernelClassifier
from hilboost.core.errors import IncompatibleParts, InvalidData, InvalidParameter
from hilboost.estimators.subset_ensembles import AdaBoostKernelClassifier
from hilboost.losses import OneHotSquaredError

RNG = np.random.default_rng(0)
N = 480
X = RNG.normal(size=(N, 3))
Z = X[:, 0] + X[:, 1] ** 2 + 0.7 * RNG.normal(size=N)
LABELS = np.array(["d", "a", "c", "b"])[np.digitize(Z, [-0.3, 0.7, 1.8])]
TWO = np.where(Z > 1, "yes", "no")
FIT, HELD, NEW = slice(0, 160), slice(160, 320), slice(320, N)

CLASSIFIERS = {
    "trees": BoostingClassifier(**PLAIN),
    "trees-hinge": BoostingClassifier("hinge", **PLAIN),
    "full-log-loss": KernelBoostingClassifier("log_loss", **KERNEL),
    "nested": SparseKernelClassifier(n_basis=30, **KERNEL),
    "hinge": SparseKernelClassifier("squared_hinge", n_basis=30, **KERNEL),
    "votes": AdaBoostKernelClassifier(**SUBSETS),
}


def classifier(**parameters):
    return BoostingClassifier(**PLAIN | parameters)


def ensemble(**parameters):
    return BoostingClassifier(**FOLDS | parameters)


def hits(model, sets, labels):
    return sets[np.arange(len(labels)), np.searchsorted(model.classes_, labels)]


def scores_of(model, X):
    return np.array([naive.adaptive_scores(p) for p in model.predict_proba(X)])


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier(name):
    model, labels = CLASSIFIERS[name], TWO if name in ("trees", "votes") else LABELS
    model.fit(X[FIT], labels[FIT]).calibrate(X[HELD], labels[HELD])
    sets = model.predict_set(X[NEW], 0.9)
    assert sets.shape == (160, len(model.classes_))
    assert sets.dtype == bool
    found = hits(model, sets, labels[NEW])
    alone = hits(model, sets & (sets.sum(axis=1) == 1)[:, None], labels[NEW]).mean()
    assert alone > 0.9 or likely(found, 0.9, 160)
    best = np.searchsorted(model.classes_, model.predict(X[NEW]))
    assert sets[np.arange(160), best].all()


def test_sets_equal_their_twin():
    model = classifier().fit(X[FIT], LABELS[FIT]).calibrate(X[HELD], LABELS[HELD])
    codes = np.searchsorted(model.classes_, LABELS[HELD])
    q = naive.threshold(scores_of(model, X[HELD])[np.arange(160), codes], 0.8)
    expected = scores_of(model, X[NEW]) <= q + 1e-12
    np.testing.assert_array_equal(model.predict_set(X[NEW], 0.8), expected)


def test_weights_count_as_repetitions():
    weight = np.random.default_rng(1).integers(0, 4, 160)
    model = classifier(class_weight="balanced").fit(X[FIT], LABELS[FIT])
    model.calibrate(np.repeat(X[HELD], weight, 0), np.repeat(LABELS[HELD], weight))
    expected = model.predict_set(X[NEW])
    model.calibrate(X[HELD], LABELS[HELD], 2 * weight)
    np.testing.assert_array_equal(model.predict_set(X[NEW]), expected)


def test_every_class_is_calibrated_by_its_own_rows():
    model = classifier().fit(X[FIT], LABELS[FIT])
    model.calibrate(X[HELD], LABELS[HELD], groups="class")
    sets = model.predict_set(X[NEW], 0.8)
    scores = scores_of(model, X[HELD])
    for k, name in enumerate(model.classes_):
        q = naive.threshold(scores[LABELS[HELD] == name, k], 0.8)
        np.testing.assert_array_equal(sets[:, k], scores_of(model, X[NEW])[:, k] <= q + 1e-12)
        rows = LABELS[NEW] == name
        assert likely(sets[rows, k], 0.8, (LABELS[HELD] == name).sum())


def test_groups_of_rows():
    groups = np.where(X[:, 2] > 0, 1, 2)
    model = classifier().fit(X[FIT], LABELS[FIT])
    model.calibrate(X[HELD], LABELS[HELD], groups=groups[HELD])
    sets = model.predict_set(X[NEW], groups=groups[NEW])
    for group in (1, 2):
        held, new = groups[HELD] == group, groups[NEW] == group
        alone = classifier().fit(X[FIT], LABELS[FIT]).calibrate(X[HELD][held], LABELS[HELD][held])
        np.testing.assert_array_equal(sets[new], alone.predict_set(X[NEW][new]))


def test_ensembles_predict_sets_without_more_rows():
    model = ensemble().fit(X[FIT], LABELS[FIT])
    link, folds = model.loss_.inverse_link, model.fitted_.calibration.folds
    codes = np.searchsorted(model.classes_, LABELS[FIT])
    members = model.fitted_.members

    def scores(member, X):
        return np.array([naive.adaptive_scores(p) for p in link(member.predict_raw(X))])

    own = np.empty(160)
    for k, member in enumerate(members):
        own[folds == k] = scores(member, X[FIT])[folds == k, codes[folds == k]]
    np.testing.assert_allclose(model.fitted_.calibration.scores[:, 0], own, atol=1e-14)
    new = np.stack([scores(member, X[NEW]) for member in members], axis=1)
    sets = model.predict_set(X[NEW], 0.83)
    expected = [naive.cross_conformal_set(row, own, folds, 0.83) for row in new]
    assert [set(np.flatnonzero(row).tolist()) for row in sets] == expected


def test_class_weights_do_not_weigh_the_rows_of_folds():
    model = ensemble(class_weight="balanced", n_estimators=5).fit(X[FIT], LABELS[FIT])
    assert model.fitted_.calibration.weight is None
    zero = dict.fromkeys("abd", 1.0) | {"c": 0.0}
    weight = np.arange(160) % 3
    model = ensemble(class_weight=zero, n_estimators=5).fit(X[FIT], LABELS[FIT], weight)
    kept = (LABELS[FIT] != "c") & (weight > 0)
    np.testing.assert_array_equal(model.fitted_.calibration.weight, weight[kept])


# Refusals


def test_refusals():
    model = classifier().fit(X[FIT], LABELS[FIT])
    refused(InvalidData, r"predict_set needs rows.*call calibrate", model.predict_set, X)
    refused(InvalidData, "contains the class 'e'", model.calibrate, X[:1], ["e"])
    model.calibrate(X[HELD][:8], LABELS[HELD][:8])
    refused(InvalidData, "requires at least 9 calibration rows; got 8", model.predict_set, X)
    refused(InvalidParameter, "coverage must be between 0 and 1", model.predict_set, X, 2)
    rows = LABELS[HELD] != "b"
    model.calibrate(X[HELD][rows], LABELS[HELD][rows], groups="class")
    refused(InvalidData, "class 'b' has no calibration rows", model.predict_set, X)
    refused(InvalidData, "groups has no effect", model.predict_set, X, groups=LABELS)
    model.calibrate(X[HELD][:40], LABELS[HELD][:40], groups="class")
    refused(InvalidData, "got [0-9]+ of class '[abcd]'", model.predict_set, X, 0.99)
    few = ensemble(n_estimators=2).fit(X[:30], LABELS[:30])
    refused(InvalidData, "requires at least 99 calibration rows; got 30", few.predict_set, X, 0.99)


def test_a_loss_without_a_number_per_class():
    class Half(OneHotSquaredError):
        def inverse_link(self, raw):
            return super().inverse_link(raw)[:, :2]

    model = BoostingClassifier(Half(4), **FOLDS | {"n_estimators": 2}).fit(X[FIT], LABELS[FIT])
    assert model.fitted_.calibration is None
    refused(IncompatibleParts, "one probability per class", model.calibrate, X[HELD], LABELS[HELD])

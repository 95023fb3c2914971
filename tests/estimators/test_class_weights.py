"""Weights of classes: finite numbers that are not negative, for every classifier."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import PLAIN

from hilboost import BoostingClassifier, KernelBoostingClassifier, SparseKernelClassifier
from hilboost.core.errors import InvalidParameter
from hilboost.kernels import Gaussian

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
LABELS = np.where(X[:, 0] > 0, "yes", "no")
MACHINE = {"kernel": Gaussian(1.0), "regularization": 0.1, "random_state": 0}
CLASSIFIERS = {
    "trees": lambda weight: BoostingClassifier(**PLAIN, class_weight=weight),
    "boosted kernel": lambda weight: KernelBoostingClassifier(**MACHINE, class_weight=weight),
    "kernel": lambda weight: SparseKernelClassifier(**MACHINE, class_weight=weight),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
@given(
    wrong=st.sampled_from([-1, -1e-300, np.nan, np.inf, -np.inf, None, "2", 1j, [1], np.ones(2)]),
    label=st.sampled_from(["yes", "no"]),
    other=st.sampled_from([{}, {"yes": 1}, {"no": 2.5, "yes": 0}]),
)
def test_wrong_weights_are_named(name, wrong, label, other):
    with pytest.raises(InvalidParameter, match=f"class_weight={{'{label}': .*}} is not a weight"):
        CLASSIFIERS[name](other | {label: wrong}).fit(X, LABELS)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_some_class_must_count(name):
    with pytest.raises(InvalidParameter, match="class_weight is zero for every class"):
        CLASSIFIERS[name]({"yes": 0, "no": 0.0}).fit(X, LABELS)


@given(
    yes=st.sampled_from([0, 2, np.float32(0.5), np.int64(3), True, 1e-9]),
    no=st.sampled_from([1, 0.25]),
)
def test_numbers_of_any_type_are_weights(yes, no):
    model = CLASSIFIERS["trees"]({"yes": yes, "no": no})
    if not yes:
        with pytest.warns(UserWarning, match="only one class"):
            model.fit(X, LABELS)
        return
    weight = np.where(LABELS == "yes", float(yes), no)
    expected = CLASSIFIERS["trees"](None).fit(X, LABELS, sample_weight=weight)
    found = model.fit(X, LABELS).predict_raw(X)
    np.testing.assert_allclose(found, expected.predict_raw(X), rtol=1e-12, atol=1e-12)

"""scikit-learn's own checks of an estimator."""

import pickle

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingClassifier,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    OutputKernelForestRegressor,
    OutputKernelTreeRegressor,
    SparseKernelClassifier,
    SparseKernelRidge,
)
from hilboost.estimators.subset_ensembles import (
    AdaBoostKernelClassifier,
    AveragedKernelRidge,
    BayesianCommitteeMachine,
    ConvexKernelRidge,
    MixtureOfKernelExperts,
    StackedKernelRidge,
)
from hilboost.kernels import Gaussian
from hilboost.learners.kernel_machine.tuning.search import Search
from hilboost.outputs import KernelOutput

pytestmark = pytest.mark.filterwarnings("ignore")

SHORT = {"n_estimators": 10, "learning_rate": 0.4}
GIVEN = {"kernel": "matern52", "regularization": 0.1}
"""Estimators without it search for a kernel, all by the same code."""


@pytest.fixture(autouse=True, scope="module")
def equal_searches_are_done_once():
    """The checks fit the same few tables again and again; a search is a function of its rows."""
    search, found = Search.best, {}

    def best(self):
        key = pickle.dumps((self.columns, self.sampled, self.n, self.floor))
        if key not in found:
            found[key] = search(self)
        return found[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Search, "best", best)
        yield


@parametrize_with_checks(
    [
        BoostingRegressor(n_estimators=10),
        BoostingClassifier(n_estimators=10, learner="tree"),
        KernelBoostingRegressor(),
        KernelBoostingClassifier(),
        KernelBoostingClassifier("log_loss", **GIVEN),
        SparseKernelRidge(),
        SparseKernelClassifier(**GIVEN),
        SparseKernelClassifier("squared_hinge", n_basis=20, **GIVEN),
        AveragedKernelRidge(**GIVEN),
        ConvexKernelRidge(**GIVEN),
        BayesianCommitteeMachine(**GIVEN),
        MixtureOfKernelExperts(n_estimators=3, **GIVEN),
        StackedKernelRidge(n_estimators=3, **GIVEN),
        AdaBoostKernelClassifier(n_estimators=4),
        KernelBoostingRegressor(stages="sparse", n_basis=40, n_estimators=3, **GIVEN),
        OutputKernelBoostingRegressor(**SHORT),
        OutputKernelBoostingRegressor(
            KernelOutput(Gaussian(1.0), tolerance=0), learner="ok3", **SHORT
        ),
        OutputKernelForestRegressor(n_estimators=10),
        OutputKernelTreeRegressor(),
    ]
)
def test_estimators_keep_the_rules_of_scikit_learn(estimator, check):
    assert check(estimator) is None

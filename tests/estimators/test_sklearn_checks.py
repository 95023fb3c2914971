"""scikit-learn's own checks of an estimator."""

import pickle

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import hilboost
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
        hilboost.BoostingRegressor(n_estimators=10),
        hilboost.BoostingClassifier(n_estimators=10, learner="tree"),
        hilboost.KernelBoostingRegressor(),
        hilboost.KernelBoostingClassifier(),
        hilboost.KernelBoostingClassifier("log_loss", **GIVEN),
        hilboost.SparseKernelRidge(),
        hilboost.SparseKernelClassifier(**GIVEN),
        hilboost.SparseKernelClassifier("squared_hinge", n_basis=20, **GIVEN),
        hilboost.AveragedKernelRidge(**GIVEN),
        hilboost.ConvexKernelRidge(**GIVEN),
        hilboost.BayesianCommitteeMachine(**GIVEN),
        hilboost.MixtureOfKernelExperts(n_estimators=3, **GIVEN),
        hilboost.StackedKernelRidge(n_estimators=3, **GIVEN),
        hilboost.AdaBoostKernelClassifier(n_estimators=4),
        hilboost.KernelBoostingRegressor(stages="sparse", n_basis=40, n_estimators=3, **GIVEN),
        hilboost.OutputKernelBoostingRegressor(**SHORT),
        hilboost.OutputKernelBoostingRegressor(
            KernelOutput(Gaussian(1.0), tolerance=0), learner="ok3", **SHORT
        ),
        hilboost.OutputKernelForestRegressor(n_estimators=10),
        hilboost.OutputKernelTreeRegressor(),
    ]
)
def test_estimators_keep_the_rules_of_scikit_learn(estimator, check):
    assert check(estimator) is None

"""What every built-in learner promises."""

from dataclasses import replace

import pytest
from tests.cases import LEARNERS, cells

from hilboost.core.discovery import classes_in
from hilboost.core.learner import Learner
from hilboost.kernels import Gaussian, Linear, OnColumns
from hilboost.learners.kernel_machine.config import KernelMachineConfig
from hilboost.learners.kernel_machine.full import FullLearner
from hilboost.learners.kernel_machine.kernel_learner import BlockLearner
from hilboost.learners.kernel_machine.metric_learner import MetricKernelLearner
from hilboost.learners.kernel_machine.nested import NestedLearner
from hilboost.learners.kernel_machine.sparse import SparseLearner
from hilboost.learners.mixed import MixedLearner
from hilboost.learners.ridge import RidgeLearner
from hilboost.learners.tree import TreeLearner
from hilboost.testing import LearnerContract


class OfCase(LearnerContract):
    def __init__(self, case):
        self.learner = case.learner()
        self.takes_weights, self.saved = case.takes_weights, self.learner.in_files

    def make(self):
        return self.learner


SETTING = KernelMachineConfig(kernel=Gaussian(2.0), regularization=0.1)


class OfFullMachines(LearnerContract):
    saved = takes_samples = False

    def make(self):
        return FullLearner(SETTING)


class OfSparseMachines(LearnerContract):
    saved = False

    def make(self):
        return SparseLearner(SETTING, n_basis=8, subset_size=30)


class OfBlocks(LearnerContract):
    saved = False

    def make(self):
        return BlockLearner(SETTING)


class OfSeveralKernels(LearnerContract):
    saved = False

    def make(self):
        setting = replace(SETTING, kernels=(Gaussian(2.0), OnColumns(Linear(), [0])))
        return SparseLearner(setting, n_basis=8, subset_size=30)


class OfFullStagesOfSeveralKernels(LearnerContract):
    saved = takes_samples = False

    def make(self):
        setting = replace(SETTING, kernels=(Gaussian(2.0), Linear()))
        return FullLearner(setting)


class OfMetricKernel(LearnerContract):
    def make(self):
        return MetricKernelLearner(precision="float64")


class OfTreesAndLinear(LearnerContract):
    def make(self):
        trees = TreeLearner(min_samples_leaf=2, max_leaf_nodes=8)
        return MixedLearner((trees, RidgeLearner()), ("tree", "linear"))


class OfTreesAndMachines(LearnerContract):
    saved = False

    def make(self):
        trees = TreeLearner(min_samples_leaf=2, max_leaf_nodes=8)
        return MixedLearner((trees, SparseLearner(SETTING, n_basis=20), RidgeLearner()))


CONTRACTS = [
    cls
    for cls in LearnerContract.__subclasses__()
    if cls.__module__ == __name__ and cls is not OfCase
]


REPORTED = ("trees-separate", "trees-shared", "vector-trees", "linear", "ridge")


@pytest.mark.parametrize(("case", "check"), cells(LEARNERS, LearnerContract.checks(), REPORTED))
def test_contract_of_rows(case, check):
    getattr(OfCase(case), check)()


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize("check", LearnerContract.checks())
def test_contract(contract, check):
    getattr(contract(), check)()


def test_every_learner_has_a_row_or_a_contract():
    found = set(classes_in("hilboost.learners", Learner))
    tested = [OfCase(case) for case in LEARNERS] + [contract() for contract in CONTRACTS]
    # Nested machines are tested as parts of SparseKernelRidge.
    assert found == {type(contract.make()) for contract in tested} | {NestedLearner}

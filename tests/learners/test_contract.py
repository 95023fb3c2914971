"""What every built-in learner promises."""

import pytest
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hilboost.kernels import Gaussian, Linear, OnColumns
from hilboost.learners.kernel_machine import (
    BlockLearner,
    FullLearner,
    KernelMachineConfig,
    SeveralKernelsLearner,
    SparseLearner,
)
from hilboost.learners.metric_kernel import MetricKernelLearner
from hilboost.learners.mixed import MixedLearner
from hilboost.learners.ridge import RidgeLearner
from hilboost.learners.tree import TreeLearner, VectorTreeLearner
from hilboost.learners.wrapped import WrappedLearner
from hilboost.testing import LearnerContract


class OfTrees(LearnerContract):
    def make(self):
        return TreeLearner(min_samples_leaf=2, max_leaf_nodes=8)


class OfSharedTrees(LearnerContract):
    def make(self):
        return TreeLearner(min_samples_leaf=2, max_leaf_nodes=8, shared=True)


class OfSketchedTrees(LearnerContract):
    def make(self):
        return TreeLearner(min_samples_leaf=2, max_leaf_nodes=8, shared=True, sketch=1)


class OfVectorTrees(LearnerContract):
    def make(self):
        return VectorTreeLearner(max_splits=7, min_samples_leaf=2)


class OfRandomTrees(LearnerContract):
    def make(self):
        return VectorTreeLearner(max_splits=7, random_cuts=True)


class OfRidge(LearnerContract):
    saved = False  # the regressor itself can be saved, its wrapper is made by each fit

    def make(self):
        return WrappedLearner(Ridge(alpha=1e-3), together=True)


class OfNeighbors(LearnerContract):
    takes_weights = False
    saved = False

    def make(self):
        return WrappedLearner(KNeighborsRegressor(3))


class OfPipeline(LearnerContract):
    saved = False

    def make(self):
        return WrappedLearner(make_pipeline(StandardScaler(), Ridge(alpha=1e-3)))


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
        stage = SparseLearner(SETTING, n_basis=8, subset_size=30)
        return SeveralKernelsLearner(stage, (Gaussian(2.0), OnColumns(Linear(), [0])))


class OfFullStagesOfSeveralKernels(LearnerContract):
    saved = takes_samples = False

    def make(self):
        return SeveralKernelsLearner(FullLearner(SETTING), (Gaussian(2.0), Linear()))


class OfLinear(LearnerContract):
    def make(self):
        return RidgeLearner()


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


CONTRACTS = [cls for cls in LearnerContract.__subclasses__() if cls.__module__ == __name__]


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize("check", LearnerContract.checks())
def test_contract(contract, check):
    getattr(contract(), check)()

"""Parts such as a user may write."""

from dataclasses import dataclass

import numpy as np

from hilboost import Loss
from hilboost.core.base_model import BaseModel, Term
from hilboost.core.capabilities import Capabilities
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.learner import Learner
from hilboost.core.output_space import Embedding, OutputSpace
from hilboost.kernels import Gaussian, Kernel
from hilboost.learners.tree import TreeLearner


class Weighted(Loss):
    """Squared error whose parameter is an array, and an inverse link of its own."""

    def __init__(self, factors=1.0, offset=2):
        self.factors = np.atleast_1d(factors)
        self.more = {"offset": offset, "names": ("a", "b"), "set": {1, 2}, "kernel": Gaussian(2.0)}

    def initial_raw(self, target):
        return target.y.mean(axis=0)

    def value(self, target, raw):
        return (self.factors * (target.y - raw) ** 2).sum(axis=1) / 2

    def gradients(self, target, raw):
        return Gradients(self.factors * (target.y - raw), np.tile(self.factors, (len(raw), 1)))

    def inverse_link(self, raw):
        return raw + self.more["offset"]


class Outer:
    @dataclass(frozen=True)
    class Slope(BaseModel):
        slopes: np.ndarray
        offset: np.ndarray

        def predict_raw(self, X):
            return X @ self.slopes + self.offset


class Slopes(Learner):
    ridge = 1.0

    def prepare(self, X, weight, seed, n_threads):
        return X

    def fit(self, data, gradients, sample, rng):
        offset = gradients.negative_gradient.mean(axis=0)
        gram = data.T @ data + self.ridge * np.eye(data.shape[1])
        model = Outer.Slope(
            np.linalg.solve(gram, data.T @ (gradients.negative_gradient - offset)), offset
        )
        part = Term.of(model, slice(0, gradients.negative_gradient.shape[1]))
        return [FittedTerm(part, outputs=model.predict_raw(data))]


class PenalizedSlopes(Slopes):
    """Its stages take the penalty of the slopes into account, as a kernel machine does."""

    capabilities = Capabilities(penalizes=True)


class MyTrees(TreeLearner):
    pass


@dataclass(frozen=True)
class Cauchy(Kernel):
    scale: float = 1.0

    def block(self, A, B):
        return 1 / (1 + ((A[:, None] - B[None]) ** 2).sum(axis=2) / self.scale)

    def diag(self, A):
        return np.ones(len(A))


class Doubles(OutputSpace):
    def fit(self, labels):
        return DoubleEmbedding()


class DoubleEmbedding(Embedding):
    ways = ("exact",)

    def encode(self, labels):
        return 2.0 * np.asarray(labels, dtype=float).reshape(len(labels), -1)

    def decode(self, raw, way, candidates=None):
        return raw / 2


class Slotted(Weighted):
    __slots__ = ("width",)


class Stranger:
    pass


def function():
    raise AssertionError


class PseudoHuber(Loss):
    """A smooth loss of the size of the residual alone."""

    symmetric = True

    def __init__(self, width=1.0):
        self.width = width

    def initial_raw(self, target):
        return np.average(target.y, axis=0, weights=target.weight)

    def value(self, target, raw):
        return self.width**2 * (self._root(target, raw) - 1).sum(axis=1)

    def gradients(self, target, raw):
        root = self._root(target, raw)
        return Gradients((target.y - raw) / root, 1 / root**3)

    def _root(self, target, raw):
        return np.sqrt(1 + ((target.y - raw) / self.width) ** 2)

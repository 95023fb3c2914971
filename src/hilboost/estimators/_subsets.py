"""What kernel machines on random subsets share, however they are combined."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from hilboost.backends import dense
from hilboost.boosting import Progress
from hilboost.core.contracts import Callback
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.records import Floats, Part, Stage, Target
from hilboost.estimators._shell import Shell
from hilboost.estimators.checks import check_kernel
from hilboost.estimators.fitting import Fit
from hilboost.estimators.sklearn_callbacks import Relay
from hilboost.kernels import Kernel, as_kernel
from hilboost.kernels.gram import evaluate
from hilboost.learners.kernel_machine import KernelExpansion, Setting, Workspace
from hilboost.learners.kernel_machine.tuning import choose
from hilboost.learners.kernel_machine.workspace import free_memory
from hilboost.model import AdditiveModel


@dataclass(frozen=True)
class Maker:
    """What all members have in common, and how one is made.

    Attributes
    ----------
    fit : Fit
    data : Workspace
    kernel : Kernel
    regularization : float
    residual : (n, r) float64
        Targets less the start value.
    """

    fit: Fit
    data: Workspace
    kernel: Kernel
    regularization: float
    residual: Floats

    def member(
        self, rows: NDArray[np.int64], copies: Floats | None = None
    ) -> tuple[KernelExpansion, Floats]:
        """Kernel ridge regression on some rows, and the Cholesky factor of ``K + λ/w``.

        ``copies`` (m,) counts every row so many times, besides its sample weight.  Cost O(m³).
        """
        data = self.data
        X = dense.to_numpy(data.X[rows])
        weight = np.ones(len(rows)) if data.weight is None else data.weight[rows]
        weight = weight if copies is None else weight * copies
        K = dense.add_to_diagonal(evaluate(self.kernel, X, X), self.regularization / weight)
        factor = dense.cholesky(K)
        alpha = dense.solve_cholesky(factor, self.residual[rows])
        basis = X.astype(data.precision)
        return KernelExpansion(self.kernel, data.inputs, basis, alpha, rows), factor

    def members(self, subsets: list[NDArray[np.int64]]) -> list[tuple[KernelExpansion, Floats]]:
        """One member a subset, side by side."""
        with dense.blas_threads(1):
            return self.data.team.map(self.member, subsets)


def drawn(n: int, size: int, count: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Subsets of ``size`` rows, disjoint as long as there are rows left."""
    order = np.concatenate([rng.permutation(n) for _ in range(-(-count * size // n))])
    return [np.unique(order[j * size : (j + 1) * size]) for j in range(count)]


class SubsetEnsemble(Shell):
    """Draws subsets and chooses the kernel once; not to be used by itself."""

    loss = "squared_error"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "subset_size": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="neither"),
        ],
        "regularization": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }
    _uses_held_out = False

    def __init__(
        self,
        *,
        n_estimators: int = 20,
        subset_size: float = 1000,
        kernel: Any = "auto",
        regularization: float | str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.subset_size = subset_size
        self.kernel = kernel
        self.regularization = regularization
        self.random_state = random_state
        self.n_jobs = n_jobs

    @abstractmethod
    def _learn(self, maker: Maker) -> None:
        """Make the members and keep how they are combined."""

    def _fit(
        self,
        X: Floats,
        target: Target,
        held_out: tuple[Floats, Target] | None,
        continued: Progress | None,
        callbacks: Sequence[Callback],
    ) -> None:
        given = [callback for callback in callbacks if not isinstance(callback, Relay)]
        if given or (held_out is not None and not self._uses_held_out):
            raise InvalidData(
                f"{type(self).__name__}.fit has no use for callbacks, X_val and y_val; leave them "
                "out."
            )
        fit = self._started(X, target, held_out)
        self.loss_, self._start, n = fit.loss, fit.start, len(X)
        gradients = fit.loss.gradients(target, np.broadcast_to(fit.start, (n, len(fit.start))))
        auto = isinstance(self.kernel, str) and self.kernel == "auto"
        kernel = "auto" if auto else as_kernel(self.kernel)
        check_kernel(self.kernel, self.categorical_features, self._schema)
        setting = Setting(
            kernel=kernel,
            regularization=self.regularization,
            categorical=self._schema.categories,
        )
        size = self._size(n)
        self._check_memory(size)
        data = setting.prepare(X, target.weight, fit.seed, self._n_threads(n * size))
        try:
            self.kernel_, self.regularization_ = choose(
                setting, data, gradients, target.weight, size
            )
            self._learn(Maker(fit, data, self.kernel_, self.regularization_, gradients.negative))
        finally:
            data.team.__exit__()

    def _size(self, n: int) -> int:
        size = self.subset_size
        return min(n, int(size) if isinstance(size, Integral) else max(1, round(size * n)))

    def _check_memory(self, size: int) -> None:
        """Factors of all members, at worst."""
        needed, free = 8.0 * (self.n_estimators + 1) * size * size, free_memory()
        if needed > free:
            raise InvalidParameter(
                f"{self.n_estimators} members of {size} rows need {needed / 2**20:.0f} MiB, more "
                f"than half of the free memory ({free / 2**20:.0f} MiB); lower subset_size or "
                "n_estimators."
            )

    def _on_random_subsets(self, maker: Maker) -> list[tuple[KernelExpansion, Floats]]:
        """All members, and their Cholesky factors."""
        n, rng = len(maker.fit.X), np.random.default_rng(maker.fit.seed)
        return maker.members(drawn(n, self._size(n), self.n_estimators, rng))

    def _keep_sum(self, members: list[KernelExpansion], weights: Floats) -> None:
        """One stage: the weighted sum of the members."""
        r = len(self._start)
        self.estimator_weights_ = weights
        parts = [
            Part(member, slice(0, r), np.full(r, weight))
            for member, weight in zip(members, weights, strict=True)
        ]
        self.model_ = AdditiveModel(self._start, (Stage(tuple(parts)),))

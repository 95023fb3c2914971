"""Base class of ensembles of kernel machines on random subsets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, RealNotInt

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam, threads_for
from hilboost.core.base_model import Stage, Term
from hilboost.core.callback import Callback
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidColumn, InvalidData, InvalidParameter
from hilboost.core.gradients import Gradients
from hilboost.core.plain_values import is_integer
from hilboost.core.row_sample import RowSample
from hilboost.core.target import Target
from hilboost.estimators import parameter_types as types
from hilboost.estimators.kernel_boosting import KernelMachineEstimator
from hilboost.estimators.preparation import FitContext
from hilboost.estimators.signatures import with_parameters
from hilboost.kernels import Kernel
from hilboost.kernels.gram import evaluate
from hilboost.kernels.registry import kernel_or_name
from hilboost.learners.kernel_machine.config import MEMORY_BUDGET, KernelMachineConfig, Workspace
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.full import FullLearner
from hilboost.learners.kernel_machine.state import MachineState
from hilboost.learners.kernel_machine.summary import KernelMachineSummary
from hilboost.model import AdditiveModel
from hilboost.model.fitted import FittedModel
from hilboost.training.categories import check_kernel
from hilboost.training.data import TrainingData
from hilboost.training.initial_state import start_of
from hilboost.training.train import TrainingResult

SUBSET_SIZES = types.COUNT, Interval(RealNotInt, 0, 1, closed="neither")


@dataclass(frozen=True)
class MemberFitter:
    """Fits members and stores the data and settings that they share."""

    training: TrainingData
    seed: int
    initial_raw: Floats  # (r,) float64
    data: Workspace
    kernel: Kernel
    regularization: float
    residual: Floats  # (n, r) float64: targets minus the initial constant
    sizes: Floats  # (r,) float64: units, in which the errors of several targets are compared

    def member(
        self, rows: NDArray[np.int64], weight: Floats | None = None
    ) -> tuple[KernelExpansion, Floats]:
        """Fit kernel ridge regression to some rows; also return the Cholesky factor of ``K + λ/w``.

        ``weight`` (m,) replaces their sample weights.  Cost O(m³).
        """
        data = self.data
        X = array_api.to_numpy(data.X[data.rows_of(rows)])
        if weight is None:
            weights = self.training.target.weight
            weight = np.ones(len(rows)) if weights is None else weights[rows]
        K = array_api.add_to_diagonal(evaluate(self.kernel, X, X), self.regularization / weight)
        factor = array_api.cholesky(K)
        alpha = array_api.solve_cholesky(factor, self.residual[rows])
        basis = X.astype(data.precision)
        return KernelExpansion(self.kernel, data.inputs, basis, alpha, rows), factor

    def members(self, subsets: list[NDArray[np.int64]]) -> list[tuple[KernelExpansion, Floats]]:
        """Fit one member per subset, in parallel."""
        with array_api.one_blas_thread():
            return self.data.team.map(self.member, subsets)

    @property
    def comparison_data(self) -> tuple[Floats, Target]:
        """Rows on which combinations are compared: the held-out ones, else all training rows."""
        rows = self.training.held_out or self.training
        return rows.X, rows.target

    def outputs(self, members: list[KernelExpansion], X: Floats) -> list[Floats]:
        """Predict with each member, in parallel, M arrays (n, r)."""
        return outputs(members, X, self.data.team)


def outputs(members: list[KernelExpansion], X: Floats, team: ThreadTeam) -> list[Floats]:
    """Predict with each member, in parallel, M arrays (n, r)."""
    with array_api.one_blas_thread():
        return team.map(lambda model: model.predict_raw(X), members)


def drawn(n: int, size: int, count: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Draw subsets of ``size`` rows, disjoint as long as enough rows are left."""
    order = np.concatenate([rng.permutation(n) for _ in range(-(-count * size // n))])
    return [np.unique(order[j * size : (j + 1) * size]) for j in range(count)]


@with_parameters
class SubsetEnsemble(KernelMachineEstimator):
    """Base class that draws subsets and selects one kernel for all members."""

    supports_files = False
    loss = "squared_error"
    _uses_held_out = False

    _: KW_ONLY
    n_estimators: types.Count = 20
    subset_size: Annotated[float | str, *SUBSET_SIZES] = 1000
    kernel: Any = "auto"
    regularization: types.NotNegativeOrAuto = "auto"
    validation: types.HeldOut = "auto"
    validation_gap: types.Gap = None
    random_state: types.RandomState = None
    n_jobs: types.Jobs = None

    @abstractmethod
    def _learn(self, maker: MemberFitter) -> AdditiveModel:
        """Fit the members, and return the additive model if they form one."""

    def _train(self, data: TrainingData, context: FitContext) -> TrainingResult:
        if data.has_one_class:
            raise InvalidData("y contains only one class; these ensembles require at least two.")
        self._check_arguments(data, [one for one in context.callbacks if one is not context.relay])
        begun = start_of(self._make_loss(data.codec), data, uses_units=False)
        loss, initial_raw = begun.loss, begun.initial_raw
        seed, n, target = self._seed(), len(data.X), data.target
        raw = np.broadcast_to(initial_raw, (n, len(initial_raw)))
        gradients = loss.gradients(target, raw)
        units = loss.units(target) if target.y.shape[1] > 1 else None
        sizes = np.ones(len(initial_raw)) if units is None else units.size
        check_kernel(self.kernel, self._categories(), data.schema)
        config = KernelMachineConfig(
            kernel=kernel_or_name(self.kernel, "auto"),
            regularization=self.regularization,
            categorical=data.schema.categories,
            row_weight=data.row_weight,
        )
        size = min(n, self._size(self._n_observed(data)))
        self._check_memory(size)
        n_threads = threads_for(self.n_jobs, n * size)
        state = MachineState(config.prepare(data.X, target.weight, seed, n_threads))
        state.n_effective = size
        try:
            in_units = Gradients(gradients.negative_gradient / sizes)
            sample = RowSample(None, target.weight, dependence=target.dependence)
            (problem,) = state.problems(config, in_units, sample)
            kernel, lam = problem.kernel, problem.regularization
            maker = MemberFitter(
                *(data, seed, initial_raw, state.workspace, kernel, lam),
                residual=gradients.negative_gradient,
                sizes=sizes,
            )
            model = self._learn(maker)
        finally:
            state.close()
        parts = model, loss, FullLearner(config), data.schema, data.codec, seed
        summary = KernelMachineSummary(kernel, lam)
        return TrainingResult(FittedModel(*parts, kernel_machine=summary))

    def _check_arguments(self, data: TrainingData, callbacks: Sequence[Callback]) -> None:
        if callbacks or (data.held_out is not None and not self._uses_held_out):
            raise InvalidData(
                f"{type(self).__name__}.fit does not support callbacks, X_val and y_val; remove "
                "them."
            )
        if len(data.validation) > 1:
            raise InvalidData(
                f"{type(self).__name__}.fit supports one validation set; pass arrays as X_val and "
                "y_val."
            )

    def _n_observed(self, data: TrainingData) -> int:
        """Return the number of rows as ``subset_size`` counts them."""
        return len(data.X)

    def _size(self, n: int) -> int:
        size = self.subset_size
        return min(n, int(size) if is_integer(size) else max(1, round(float(size) * n)))

    def _check_memory(self, size: int) -> None:
        """Check that the factors of all members fit into memory in the worst case."""
        needed = 8.0 * (self.n_estimators + 1) * size * size
        if needed > MEMORY_BUDGET:
            raise InvalidParameter(
                f"{self.n_estimators} members of {size} rows require {needed / 2**20:.0f} MiB, "
                f"more than the limit of {MEMORY_BUDGET / 2**20:.0f} MiB; decrease subset_size or "
                "n_estimators."
            )

    def _on_random_subsets(self, maker: MemberFitter) -> list[tuple[KernelExpansion, Floats]]:
        """Fit all members; return them with their Cholesky factors."""
        n, rng = len(maker.training.X), np.random.default_rng(maker.seed)
        return maker.members(drawn(n, self._size(n), self.n_estimators, rng))

    def _sum(
        self, maker: MemberFitter, members: list[KernelExpansion], weights: Floats
    ) -> AdditiveModel:
        """Build a model with one stage, the weighted sum of the members."""
        r = len(maker.initial_raw)
        self.estimator_weights_ = weights
        terms = [
            Term(member, slice(0, r), np.full(r, weight))
            for member, weight in zip(members, weights, strict=True)
        ]
        return AdditiveModel(maker.initial_raw, (Stage(tuple(terms)),))


class NonAdditiveEnsemble(SubsetEnsemble):
    """Base class of ensembles whose predictions are not a fixed sum of the members."""

    is_additive = False
    members_: list[KernelExpansion]

    @abstractmethod
    def _combined(self, X: Floats, team: ThreadTeam) -> Floats:
        """Combine the members at the rows of ``X``, (n, r), with one BLAS thread."""

    @property
    def model_(self) -> Any:
        """Not available, because the predictions are not a sum of the members.

        Raises
        ------
        AttributeError
            Always raised.
        """
        raise AttributeError(
            f"{type(self).__name__} is not an additive model; its members are in members_."
        )

    def _raw(self, X: object) -> Floats:
        """Combine the predictions of the members; for a classifier, sum their votes."""
        X = self._checked(X)
        n_threads = threads_for(self.n_jobs, len(X) * len(self.members_) * 1000)
        try:
            with ThreadTeam(n_threads) as team, array_api.one_blas_thread():
                return self._combined(X, team)
        except InvalidColumn as error:
            raise error.named(self.fitted_.schema.names) from None

    def _stages(self, X: object) -> Iterator[Floats]:
        """Yield the predictions of the single stage."""
        yield self._raw(X)

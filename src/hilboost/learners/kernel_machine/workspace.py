"""What a kernel machine keeps during a fit: scaled rows, threads, and the function so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api as dense
from hilboost.backends.array_api import Array
from hilboost.backends.threads import ThreadTeam
from hilboost.core.base_model import Stage, Term
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter
from hilboost.core.learner import FittedTerm, RowSample
from hilboost.core.loss import Gradients
from hilboost.kernels import (
    Delta,
    Hamming,
    Kernel,
    OnColumns,
    Precomputed,
    Product,
    Scaled,
    Sum,
    Tanimoto,
)
from hilboost.kernels.gram import Gram
from hilboost.learners.kernel_machine.descending import Descending, Descent, multiplied
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.inputs import (
    Inputs,
    extreme_exponents,
    require_complete,
)
from hilboost.learners.kernel_machine.merging import DistinctRows
from hilboost.learners.kernel_machine.rounding import ROWS_CHECKED, loses_digits

DIRECT_UP_TO = 5000  # rows whose Gram matrix is factored whole
_FLOAT64_UP_TO = 4096
_FEW_COLUMNS = 64
_USUAL_EXPONENT = 100  # of gradients, which are squared and divided by λ
MEMORY_BUDGET = 8e9  # bytes: the triangle of 60,000 rows' Gram matrix, and what goes beside it


@dataclass(frozen=True)
class KernelMachineConfig:
    """What all kernel learners have in common.

    Parameters
    ----------
    kernel : Kernel or "auto"
        ``"auto"`` chooses kernel, length scales and regularization from the first gradients.
    regularization : float or "auto"
        λ of ``½ sum_i w_i (y_i - f(x_i))² + ½ λ |f|²``; the noise variance of a Gaussian process.
    standardize : bool or "auto"
        Columns to mean 0 and standard deviation 1 first; length scales are in these units.
        ``"auto"`` divides more than 64 columns of like spread (pixels, spectra) by one number, and
        leaves columns as they are for kernels of row numbers, fingerprints and codes.
    categorical : tuple of int
        Columns of category codes, compared by equality.
    memory_budget : float or "auto"
        Bytes for Gram matrices; "auto" is 8e9, on any machine.
    precision : {"auto", "float32", "float64"}
        Of kernel values; "auto" is float64 up to 4,096 rows.
    device : str or None
        A Torch device such as ``"cuda"``; ``None`` is NumPy.
    tuning : {"auto", "marginal_likelihood", "mean_distance"}
        ``"marginal_likelihood"`` fits the hyperparameters of the given kernel, or of SY2006's
        (23), and λ to 1,000 rows; ``"mean_distance"`` takes a Gaussian whose θ is the mean squared
        distance, and λ by leave-one-out.
    tuning_seconds : float or None
        About how long the choice of kernel may take.
    """

    kernel: Kernel | str = "auto"
    regularization: float | str = "auto"
    standardize: bool | str = "auto"
    categorical: tuple[int, ...] = ()
    memory_budget: float | str = "auto"
    precision: str = "auto"
    device: str | None = None
    tuning: str = "auto"
    tuning_seconds: float | None = None

    def prepare(self, X: Floats, weight: Floats | None, seed: int, n_threads: int) -> Workspace:
        """Scale the rows and start the threads."""
        require_complete(X)
        if isinstance(self.kernel, Kernel):
            self.kernel.check(X.shape[1])
        X = np.asarray(X, dtype=np.float64)
        distinct = DistinctRows.of(X, weight)
        if distinct is not None:
            X, weight = X[distinct.first], distinct.sums(distinct.weight)
        inputs = Inputs.unchanged(X.shape[1])
        if self.standardize:
            common = self.standardize == "auto" and _are_alike(X)
            if self.standardize is True or not _reads_raw_columns(self.kernel):
                inputs = Inputs.of(X, weight, self.categorical, common)
        precision = self.precision
        if precision == "auto":
            precision = "float64" if len(X) <= _FLOAT64_UP_TO else "float32"
        beside = None if self.device is None else _empty_on(self.device)
        return Workspace(
            inputs=inputs,
            X=inputs(X, beside, precision),
            weight=weight,
            distinct=distinct,
            source=X if precision == "float32" and self.precision == "auto" else None,
            memory=memory_budget(self.memory_budget),
            seed=seed,
            team=ThreadTeam(n_threads),
            kernel=None if isinstance(self.kernel, str) else self.kernel,
            regularization=None
            if isinstance(self.regularization, str)
            else float(self.regularization),
            is_tuned=self.tuning == "auto"
            and not isinstance(self.kernel, str)
            and not isinstance(self.regularization, str),
        )


def _reads_raw_columns(kernel: Any) -> bool:
    """Whether a kernel is about the numbers themselves: row numbers, counts, codes."""
    if isinstance(kernel, Scaled | OnColumns):
        return _reads_raw_columns(kernel.kernel)
    if isinstance(kernel, Sum | Product):
        return any(_reads_raw_columns(part) for part in kernel.parts)
    return isinstance(kernel, Precomputed | Tanimoto | Delta | Hamming)


def _are_alike(X: Floats) -> bool:
    """Many columns, none of which spreads much more than most of them."""
    if X.shape[1] <= _FEW_COLUMNS:
        return False
    exponent = extreme_exponents(X)
    if exponent.any():
        X = np.ldexp(X, -exponent[np.abs(X).max(axis=0).argmax()])
    spread = X.std(axis=0)
    return bool(spread.max() <= 10 * np.median(spread))


def _empty_on(device: str) -> Array:
    try:
        import torch
    except ImportError as error:
        raise InvalidParameter(
            f"device={device!r} requires PyTorch; install torch, or set device=None."
        ) from error
    try:
        return torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InvalidParameter(
            f"device={device!r} is not available ({error}); use another device, or set device=None."
        ) from error


def memory_budget(given: float | str) -> float:
    """Bytes; "auto" is the same number on any machine, since the model may depend on it."""
    return MEMORY_BUDGET if isinstance(given, str) else float(given)


def free_memory() -> float:
    """Bytes that are free now; no model depends on it."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
        return 1024.0 * float(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return np.inf


def require_free(needed: float, what: str) -> None:
    """Refuse what this machine cannot hold.

    Raises
    ------
    InvalidParameter
        Says how many MiB are needed and free.
    """
    free = free_memory()
    if needed > free:
        raise InvalidParameter(
            f"{what} requires {needed / 2**20:.0f} MiB, but only {free / 2**20:.0f} MiB of memory "
            "are free; set stages='sparse', or fit fewer rows."
        )


@dataclass
class Component:
    """The part of the model that lies in one kernel's space, on the training rows.

    Attributes
    ----------
    alpha : (n, r) float64
        Weights, by training row.
    function : (n, r) float64
        Values ``K alpha``.
    """

    alpha: Floats
    function: Floats


@dataclass
class Workspace:
    """Rows, threads, and the function so far; the first stage sets kernel and regularization.

    ``X`` (m, d) and ``weight`` (m,) are those of the distinct rows, and so are all row numbers;
    :meth:`seen` and :meth:`shown` convert from all rows to these and back, and from the unit of the
    gradients to one in which squares are finite.
    """

    inputs: Inputs
    X: Array
    weight: Floats | None
    memory: float
    seed: int
    team: ThreadTeam
    kernel: Kernel | None
    regularization: float | None
    components: dict[int, Component] = field(default_factory=dict)
    kernels: list[Kernel] = field(default_factory=list)
    variants: dict[Any, list[Kernel]] = field(default_factory=dict)
    solver: Any = None
    noise: Floats | None = None
    # Rows that the choice of kernel held out, and what it predicted for their first gradients.
    trial: tuple[NDArray[np.int64], Floats] | None = None
    unit: float | None = None  # of the gradients inside, found in the first stage
    distinct: DistinctRows | None = None  # where some rows are equal
    source: Floats | None = None  # unscaled rows, as long as the precision may become float64
    is_ill_conditioned: bool = False  # for kernel values in single precision
    is_tuned: bool = False
    converged: bool = False
    n_stages: int = 0
    # Chooses λ by the loss itself, given the kernel and the number of basis vectors.
    regularize: Callable[[Workspace, Kernel, float], float] | None = None
    descent: Descent | None = None

    @property
    def precision(self) -> str:
        """Dtype of kernel values."""
        return dense.precision(self.X)

    def use_float64(self) -> None:
        """Kernel values in double precision from now on, if the caller left the choice."""
        if self.source is not None:
            self.X = self.inputs(self.source, self.X, "float64")
            self.source = None

    def needs_float64(self, kernel: Kernel, rows: NDArray[np.int64], weights: Floats) -> bool:
        """Turn to double precision if an expansion loses its digits in single; whether it did."""
        if self.source is None:
            return False
        some = self.X[:: max(1, self.X.shape[0] // ROWS_CHECKED)]
        function = self.component(kernel, weights.shape[1]).function
        spread = float(np.sqrt((function**2).mean()))
        if not loses_digits(kernel, some, self.X[rows], weights, spread):
            return False
        self.use_float64()
        return True

    def seen(self, gradients: Gradients, sample: RowSample) -> tuple[Gradients, Floats | None]:
        """Gradients and sample weights of the distinct rows."""
        weight = sample_weights(sample, len(gradients.negative_gradient))
        if self.unit is None:
            self.unit = _unit(gradients)
        if self.unit != 1:
            gradients = replace(
                gradients, negative_gradient=gradients.negative_gradient / self.unit
            )
        if self.distinct is None:
            return gradients, weight
        return self.distinct.merged(gradients, weight)

    def shown(self, fitted: list[FittedTerm]) -> list[FittedTerm]:
        """Base models with their outputs on all rows."""
        distinct = self.distinct
        if distinct is not None:
            fitted = [_shown(f, distinct) for f in fitted]
        return fitted if self.unit in (None, 1.0) else [_in_unit(f, self.unit) for f in fitted]

    def rows_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which distinct rows some rows of the table are."""
        return rows if self.distinct is None else self.distinct.group[rows]

    def tried(self, rows: NDArray[np.int64], outputs: Floats) -> tuple[NDArray[np.int64], Floats]:
        """The rows of the table that some distinct rows stand for, and their outputs."""
        outputs = outputs if self.unit is None else outputs * self.unit
        if self.distinct is None:
            return rows, outputs
        members, places = self.distinct.members(rows)
        return members, outputs[places]

    def component(self, kernel: Kernel, n_outputs: int) -> Component:
        """What earlier stages have in this kernel's space."""
        if id(kernel) not in self.components:
            shape = (self.X.shape[0], n_outputs)
            self.components[id(kernel)] = Component(np.zeros(shape), np.zeros(shape))
            self.kernels.append(kernel)  # keeps it alive, so that its id stays its own
        return self.components[id(kernel)]

    def amplitude(self, residual: Floats) -> float:
        """The factor of kernel and noise under which the targets are most likely.

        ``y'(K + D)⁻¹y / n``, for ``y`` the targets less the start value (n, r).
        """
        if self.kernel is None or id(self.kernel) not in self.components:
            return 1.0
        alpha = self.components[id(self.kernel)].alpha
        if alpha.shape[1] != residual.shape[1]:
            return 1.0
        unit = self.unit or 1.0
        residual = residual / unit
        if self.distinct is None:
            return max(float((residual * alpha).mean()), 1e-300) * unit * unit
        assert self.regularization is not None
        weight = self.distinct.weight
        means = self.distinct.means(residual, weight)
        scatter = self.distinct.scatter(residual, weight) / max(self.regularization, 1e-300)
        total = float((means * alpha).sum()) + scatter
        return max(total / residual.size, 1e-300) * unit * unit

    def scaled_kernels(self, kernel: Kernel, factors: tuple[float, ...]) -> list[Kernel]:
        """The kernel with multiples of its length scales; the same objects in every stage."""
        key = (id(kernel), factors)
        if key not in self.variants:
            self.variants[key] = [kernel if f == 1 else kernel.stretched(f) for f in factors]
        return self.variants[key]

    def gram(self, kernel: Kernel, left: Any, right: Any, memory: float = 0.0) -> Gram:
        """``k(X[left], X[right])``; ``None`` is all rows."""
        A = self.X if left is None else self.X[left]
        B = self.X if right is None else self.X[right]
        return Gram(kernel, A, B, memory, self.team)

    def fitted(
        self, kernel: Kernel, rows: NDArray[np.int64], weights: Floats, outputs: Floats
    ) -> FittedTerm:
        """An expansion in some training rows, and what it says on all of them."""
        basis = dense.to_numpy(self.X[rows]).astype(self.precision)
        return self.fitted_on(kernel, basis, rows, weights, outputs)

    def fitted_on(
        self,
        kernel: Kernel,
        basis: NDArray,
        rows: NDArray[np.int64],
        weights: Floats,
        outputs: Floats,
    ) -> FittedTerm:
        """The same with an array of basis vectors that several stages share."""
        model = KernelExpansion(kernel, self.inputs, basis, weights, rows)
        return FittedTerm(Term.of(model, slice(0, weights.shape[1])), outputs=outputs)

    def gained(
        self, kernel: Kernel, gradients: Gradients, weight: Floats | None, regularization: float
    ) -> Floats:
        """How far the stages so far have lowered the penalized squared error, (r,).

        A step that descends on the dual may raise it, but not above that of the constant.
        """
        so_far = self.component(kernel, gradients.negative_gradient.shape[1])
        function = so_far.function
        w = 1.0 if weight is None else weight[:, None]
        gained = w * function * (0.5 * function + gradients.negative_gradient)
        return (gained - 0.5 * regularization * so_far.alpha * function).sum(axis=0)

    def stage_added(self, stage: Stage, fitted: tuple[FittedTerm, ...]) -> None:
        """Note the stage as it was added, rules included."""
        self.n_stages += 1
        for part, result in zip(stage.terms, fitted, strict=True):
            model = part.model
            assert isinstance(model, KernelExpansion)
            assert model.rows is not None
            assert result.outputs is not None
            component = self.component(model.kernel, len(part.coefficient))
            unit = self.unit or 1.0
            weights, outputs = model.weights / unit, result.outputs / unit
            component.alpha[self.rows_of(model.rows)] += part.coefficient * weights
            outputs = outputs if self.distinct is None else outputs[self.distinct.first]
            component.function += part.coefficient * outputs
        if self.descent is not None:
            (result,) = fitted
            assert isinstance(result, Descending)
            self.converged = self.descent.has_ended(stage, result)


def _unit(gradients: Gradients) -> float:
    """A power of two that the machine's targets are divided by, where their squares may overflow.

    With a hessian, gradients have a unit of their own.
    """
    largest = float(np.abs(gradients.negative_gradient).max(initial=0.0))
    exponent = np.frexp(largest)[1]
    is_usual = abs(exponent) <= _USUAL_EXPONENT or gradients.hessian is not None
    return 1.0 if is_usual else float(np.ldexp(1.0, exponent))


def _in_unit(fitted: FittedTerm, unit: float) -> FittedTerm:
    """A base model fitted to gradients that were divided by ``unit``."""
    fitted = multiplied(fitted, unit)
    if not isinstance(fitted, Descending):
        return fitted
    return replace(
        fitted,
        slope=fitted.slope * unit**2,
        curvature=fitted.curvature * unit**2,
        descent=fitted.descent * unit**2,
    )


def _shown(fitted: FittedTerm, distinct: DistinctRows) -> FittedTerm:
    """A base model of distinct rows as one of all rows."""
    model = fitted.term.model
    assert isinstance(model, KernelExpansion)
    assert model.rows is not None
    assert fitted.outputs is not None
    term = fitted.term.with_model(replace(model, rows=distinct.first[model.rows]))
    return replace(fitted, term=term, outputs=fitted.outputs[distinct.group])


def curvature_bound(gradients: Gradients) -> float:
    """A number above every entry of the hessian, 1 for squared error."""
    if gradients.bound is not None:
        return gradients.bound
    return 1.0 if gradients.hessian is None else max(float(gradients.hessian.max()), 1e-12)


def sample_weights(sample: RowSample, n: int) -> Floats | None:
    """Weight of every row, 0 outside the sample; ``None`` is one for all."""
    if sample.rows is None:
        return sample.weight
    weight = np.zeros(n)
    weight[sample.rows] = 1.0 if sample.weight is None else sample.weight[sample.rows]
    return weight

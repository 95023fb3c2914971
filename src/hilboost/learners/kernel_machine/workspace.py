"""What a kernel machine keeps during a fit: scaled rows, threads, and the function so far."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
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
from hilboost.learners.kernel_machine.descending import Descending, Descent
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.inputs import Inputs, require_complete

DIRECT_UP_TO = 5000  # rows whose Gram matrix is factored whole
_FLOAT64_UP_TO = 4096
_FEW_COLUMNS = 64
_PART_OF_FREE_MEMORY = 0.5


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
        Bytes for Gram matrices; "auto" is half of the free memory.
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
            memory=free_memory() if self.memory_budget == "auto" else float(self.memory_budget),
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
    spread = X.std(axis=0)
    return bool(spread.max() <= 10 * np.median(spread))


def _empty_on(device: str) -> Array:
    try:
        import torch
    except ImportError as error:
        raise InvalidParameter(
            f"device={device!r} needs PyTorch; install torch, or leave device=None."
        ) from error
    try:
        return torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InvalidParameter(f"device={device!r} cannot be used: {error}.") from error


def free_memory() -> float:
    """Half of the memory that is free now, in bytes."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
        free = 1024.0 * float(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        free = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) / 2
    return _PART_OF_FREE_MEMORY * free


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
    """Rows, threads, and the function so far; the first stage sets kernel and regularization."""

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
        if alpha.shape != residual.shape:
            return 1.0
        return max(float((residual * alpha).mean()), 1e-300)

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

    def stage_added(self, stage: Stage, fitted: tuple[FittedTerm, ...]) -> None:
        """Note the stage as it was added, rules included."""
        self.n_stages += 1
        for part, result in zip(stage.terms, fitted, strict=True):
            model = part.model
            assert isinstance(model, KernelExpansion)
            assert model.rows is not None
            assert result.outputs is not None
            component = self.component(model.kernel, len(part.coefficient))
            component.alpha[model.rows] += part.coefficient * model.weights
            component.function += part.coefficient * result.outputs
        if self.descent is not None:
            (result,) = fitted
            assert isinstance(result, Descending)
            self.converged = self.descent.has_ended(stage, result)


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

"""The parameters that all kernel learners share."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hilboost.backends.array_api import Array
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter
from hilboost.kernels import Kernel
from hilboost.learners.kernel_machine.inputs import (
    Bounds,
    Completion,
    Inputs,
    have_like_spreads,
    require_complete,
)
from hilboost.learners.kernel_machine.merging import DistinctRows
from hilboost.learners.kernel_machine.workspace import Workspace

DIRECT_UP_TO = 5000  # rows whose Gram matrix is factored as a whole
_FLOAT64_UP_TO = 4096
MEMORY_BUDGET = 8e9  # bytes: the triangle of 60,000 rows' Gram matrix, and what goes beside it


@dataclass(frozen=True)
class KernelMachineConfig:
    """The parameters that all kernel learners share."""

    # ``"auto"`` chooses kernel, length scales and regularization from the first gradients
    kernel: Kernel | str = "auto"
    # λ of ``½ sum_i w_i (y_i - f(x_i))² + ½ λ |f|²``; the noise variance of a Gaussian process
    regularization: float | str = "auto"
    # scales columns to mean 0 and standard deviation 1; length scales are in these units.
    # ``"auto"`` divides more than 64 columns of similar spread (pixels, spectra) by one number,
    # leaves columns as they are for kernels of row numbers, fingerprints and codes, and moves a few
    # outlying values of a column to its bounds.
    standardize: bool | str = "auto"
    categorical: tuple[int, ...] = ()  # columns of category codes, which are compared by equality
    memory_budget: float | str = "auto"  # bytes for Gram matrices; "auto" is 8e9 on any computer
    precision: str = "auto"  # of kernel values; "auto" is float64 up to 4,096 rows
    device: str | None = None  # A Torch device such as ``"cuda"``; ``None`` is NumPy
    # ``"marginal_likelihood"`` fits the hyperparameters of the given kernel, or of SY2006, eq.
    # (23), and λ to 1,000 rows; ``"mean_distance"`` uses a Gaussian whose θ is the mean squared
    # distance (SY2006, section 4), and chooses λ by leave-one-out.
    tuning: str = "auto"
    tuning_seconds: float | None = None  # approximate time limit of the choice of kernel
    # whether the choice of kernel only serves to compare the learner with others: it considers
    # fewer families of kernels
    tunes_briefly: bool = False
    row_weight: float = 1.0  # the weight of the data that counts as one row

    @property
    def given_kernel(self) -> Kernel | None:
        """The kernel that the user chose; ``None`` if the fit chooses it."""
        return None if isinstance(self.kernel, str) else self.kernel

    @property
    def given_regularization(self) -> float | None:
        """The λ that the user chose; ``None`` if the fit chooses it."""
        return None if isinstance(self.regularization, str) else float(self.regularization)

    def prepare(self, X: Floats, weight: Floats | None, seed: int, n_threads: int) -> Workspace:
        """Scale the rows and start the threads."""
        X = np.asarray(X, dtype=np.float64)
        completion = None
        if self.given_kernel is None:
            completion = Completion.of(X, weight, self.categorical)
        else:
            require_complete(X)
            self.given_kernel.check(X.shape[1])
        complete = X if completion is None else completion(X)
        distinct = DistinctRows.of(complete, weight)
        if distinct is not None:
            first = distinct.first
            X, complete, weight = X[first], complete[first], distinct.sums(distinct.weight)
        inputs = replace(self._inputs(complete, weight), completion=completion)
        precision = self.precision
        if precision == "auto":
            precision = "float64" if len(X) <= _FLOAT64_UP_TO else "float32"
        beside = None if self.device is None else _empty_on(self.device)
        return Workspace(
            inputs=inputs,
            X=inputs(X, beside, precision),
            weight=weight,
            memory=memory_budget(self.memory_budget),
            seed=seed,
            team=ThreadTeam(n_threads),
            distinct=distinct,
            source=X if precision == "float32" and self.precision == "auto" else None,
            row_weight=self.row_weight,
        )

    def _inputs(self, X: Floats, weight: Floats | None) -> Inputs:
        kernel = self.given_kernel
        needs_raw = kernel is not None and kernel.reads_raw_columns
        if not self.standardize or (self.standardize == "auto" and needs_raw):
            return Inputs.unchanged(X.shape[1])
        common = self.standardize == "auto" and have_like_spreads(X)
        bounds = Bounds.of(X, weight, self.categorical) if self.standardize == "auto" else None
        return Inputs.of(X, weight, self.categorical, common, bounds)


def _empty_on(device: str) -> Array:
    """An empty array on a device."""
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
    """Bytes; "auto" is the same number on any computer, since the model may depend on it."""
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
    """Refuse what does not fit into the free memory."""
    free = free_memory()
    if needed > free:
        raise InvalidParameter(
            f"{what} requires {needed / 2**20:.0f} MiB, but only {free / 2**20:.0f} MiB of memory "
            "are free; set stages='sparse', or fit fewer rows."
        )

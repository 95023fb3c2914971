"""State from which a kernel machine continues a fit, besides its rows and the gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hilboost.backends import array_api
from hilboost.backends.array_api import Array
from hilboost.core.dtypes import Floats
from hilboost.kernels import Kernel
from hilboost.learners.kernel_machine.descending import Descent
from hilboost.learners.kernel_machine.solvers.conjugate_gradients import Progress
from hilboost.learners.kernel_machine.solvers.linear import LinearState
from hilboost.learners.kernel_machine.tuning.choose import Choice


@dataclass(frozen=True, eq=False)
class ComponentSnapshot:
    """Weights and values (n, r) of the component of one kernel."""

    in_files: ClassVar[bool] = True

    number: int  # position among the kernels of the machine
    alpha: Floats  # (n, r) float64
    function: Floats  # (n, r) float64


@dataclass(frozen=True, eq=False)
class MachineSnapshot:
    """The function so far, the kernel and λ."""

    in_files: ClassVar[bool] = True

    unit: float  # that of the gradients
    precision: str  # dtype of the kernel values
    kernels: list[Kernel]  # that of the choice, followed by others that components can have
    choice: Choice
    descent: Descent | None
    n_stages: int
    components: list[ComponentSnapshot]
    solver: SolverSnapshot | None = None  # for full stages
    reweighted: ReweightedSnapshot | None = None  # for stages whose weights are set anew


@dataclass(frozen=True, eq=False)
class RecursionSnapshot:
    """The factors of the recursion for the weights of the stages, for one output."""

    in_files: ClassVar[bool] = True

    G: list[Floats]  # list of (n,) float64: a column for each stage
    L: Floats  # (j, j) float64
    M: Floats  # (j, j) float64


@dataclass(frozen=True, eq=False)
class ReweightedSnapshot:
    """The stages whose weights are set anew after each stage."""

    in_files: ClassVar[bool] = True

    regularization: float  # λ
    recursions: list[RecursionSnapshot]  # one for each output
    rows: list[NDArray[np.int64]]  # list of (m,) int64: basis vectors of each stage
    weights: list[Floats]  # list of (m, r) float64
    outputs: list[Floats]  # list of (n, r) float64


@dataclass(frozen=True, eq=False)
class SystemSnapshot:
    """A linear system without its matrix, and how far it is solved.

    Sums depend on the order of arrays in memory, which files do not store.
    """

    in_files: ClassVar[bool] = True

    D: Floats  # (n,) float64
    tolerance: float
    left: float
    # direction, size and residual of the search, and whether they are in Fortran order; empty
    # before the first step
    search: tuple[tuple[Floats | None, bool], ...]

    @classmethod
    def of(cls, state: LinearState) -> Self:
        """Take the arrays, which no step changes."""
        found, search = state.progress, []
        for value in () if found is None else (found.direction, found.size, found.residual):
            array = None if value is None else array_api.to_numpy(value)
            search.append((array, array is not None and not array.flags.c_contiguous))
        return cls(state.solver.D, state.tolerance, state.left, tuple(search))

    def progress(self, like: Array) -> Progress | None:
        """Return the state of the search, on the device of an array."""
        if not self.search:
            return None

        def placed(array: Any, is_fortran: bool) -> Any:
            if array is None:
                return None
            ordered = np.asarray(array, order="F" if is_fortran else "C")
            return array_api.like(ordered, like, "float64")

        return Progress(*(placed(*entry) for entry in self.search))


@dataclass(frozen=True, eq=False)
class SolverSnapshot:
    """The solvers of full stages, whose matrices are computed again."""

    in_files: ClassVar[bool] = True

    system: SystemSnapshot | None  # of bounded steps
    newton: float | None  # smallest diagonal entry in the first of the Newton steps
    is_ill_conditioned: bool
    keeps_system: bool
    is_solved: bool
    # whether the last stage was one of the present solver, whose stages share their basis
    shares_basis: bool


@dataclass(frozen=True, eq=False)
class JointSnapshot:
    """The kernels of a list whose sum makes all stages, and their functions."""

    in_files: ClassVar[bool] = True

    kernels: list[Kernel]
    functions: list[Floats]  # list of (n, r) float64: values on the distinct training rows


@dataclass(frozen=True, eq=False)
class SeveralSnapshot:
    """The machine of each kernel, and which one made which stage."""

    in_files: ClassVar[bool] = True

    unit: float
    is_least_squares: bool
    choice: Choice  # the sum of the kernels, and λ
    descent: Descent
    made_by: NDArray[np.int64]  # (n_stages,) int64
    norms: Floats  # (n_stages, n_kernels) float64
    states: list[MachineSnapshot]
    reweighted: ReweightedSnapshot | None = None  # for stages whose weights are set anew
    joint: JointSnapshot | None = None  # if the stages have the sum of the kernels

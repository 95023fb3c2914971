"""What a kernel machine needs to continue a fit, besides its rows and the gradients."""

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
    """Weights and values (n, r) of the component of one kernel.

    Attributes
    ----------
    number : int
        Position among the kernels of the machine.
    alpha, function : (n, r) float64
    """

    in_files: ClassVar[bool] = True

    number: int
    alpha: Floats
    function: Floats


@dataclass(frozen=True, eq=False)
class MachineSnapshot:
    """The function so far, the kernel and λ.

    Attributes
    ----------
    unit : float
        That of the gradients.
    precision : str
        Dtype of the kernel values.
    kernels : list of Kernel
        That of the choice, followed by others that components can have.
    choice : Choice
    descent : Descent or None
    n_stages : int
    components : list of ComponentSnapshot
    solver : SolverSnapshot or None
        For full stages.
    reweighted : ReweightedSnapshot or None
        For stages whose weights are set anew.
    """

    in_files: ClassVar[bool] = True

    unit: float
    precision: str
    kernels: list[Kernel]
    choice: Choice
    descent: Descent | None
    n_stages: int
    components: list[ComponentSnapshot]
    solver: SolverSnapshot | None = None
    reweighted: ReweightedSnapshot | None = None


@dataclass(frozen=True, eq=False)
class RecursionSnapshot:
    """The factors of the recursion for the weights of the stages, for one output.

    Attributes
    ----------
    G : list of (n,) float64
        A column for each stage.
    L, M : (j, j) float64
    """

    in_files: ClassVar[bool] = True

    G: list[Floats]
    L: Floats
    M: Floats


@dataclass(frozen=True, eq=False)
class ReweightedSnapshot:
    """The stages whose weights are set anew after each stage.

    Attributes
    ----------
    regularization : float
        λ
    recursions : list of RecursionSnapshot
        One for each output.
    rows : list of (m,) int64
        Basis vectors of each stage.
    weights : list of (m, r) float64
    outputs : list of (n, r) float64
    """

    in_files: ClassVar[bool] = True

    regularization: float
    recursions: list[RecursionSnapshot]
    rows: list[NDArray[np.int64]]
    weights: list[Floats]
    outputs: list[Floats]


@dataclass(frozen=True, eq=False)
class SystemSnapshot:
    """A linear system without its matrix, and how far it is solved.

    Sums depend on the order of arrays in memory, which files do not store.

    Attributes
    ----------
    D : (n,) float64
    tolerance, left : float
    search : tuple of (array or None, bool)
        Direction, size and residual of the search, and whether they are in Fortran order; empty
        before the first step.
    """

    in_files: ClassVar[bool] = True

    D: Floats
    tolerance: float
    left: float
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
    """The solvers of full stages, whose matrices are computed again.

    Attributes
    ----------
    system : SystemSnapshot or None
        Of bounded steps.
    newton : float or None
        Smallest diagonal entry in the first of the Newton steps.
    is_ill_conditioned, keeps_system, is_solved : bool
    shares_basis : bool
        Whether the last stage was one of the present solver, whose stages share their basis.
    """

    in_files: ClassVar[bool] = True

    system: SystemSnapshot | None
    newton: float | None
    is_ill_conditioned: bool
    keeps_system: bool
    is_solved: bool
    shares_basis: bool


@dataclass(frozen=True, eq=False)
class JointSnapshot:
    """The kernels of a list whose sum makes all stages, and their functions.

    Attributes
    ----------
    kernels : list of Kernel
    functions : list of (n, r) float64
        Values on the distinct training rows.
    """

    in_files: ClassVar[bool] = True

    kernels: list[Kernel]
    functions: list[Floats]


@dataclass(frozen=True, eq=False)
class SeveralSnapshot:
    """The machine of each kernel, and which one made which stage.

    Attributes
    ----------
    unit : float
    is_least_squares : bool
    choice : Choice
        The sum of the kernels, and λ.
    descent : Descent
    made_by : (n_stages,) int64
    norms : (n_stages, n_kernels) float64
    states : list of MachineSnapshot
    reweighted : ReweightedSnapshot or None
        For stages whose weights are set anew.
    joint : JointSnapshot or None
        If the stages are those of the sum of the kernels.
    """

    in_files: ClassVar[bool] = True

    unit: float
    is_least_squares: bool
    choice: Choice
    descent: Descent
    made_by: NDArray[np.int64]
    norms: Floats
    states: list[MachineSnapshot]
    reweighted: ReweightedSnapshot | None = None
    joint: JointSnapshot | None = None

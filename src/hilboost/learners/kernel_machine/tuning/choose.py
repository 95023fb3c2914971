"""The choice of kernel and λ in the first stage of a fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.gradients import Gradients
from hilboost.kernels import Kernel
from hilboost.kernels.gram import mean_diagonal
from hilboost.learners.kernel_machine.config import DIRECT_UP_TO, KernelMachineConfig, Workspace
from hilboost.learners.kernel_machine.descending import Conversion
from hilboost.learners.kernel_machine.tuning.likelihood import (
    SMALLEST_LAMBDA,
    by_likelihood,
    by_mean_distance,
)
from hilboost.learners.kernel_machine.tuning.scoring import (
    ROWS_OF_HOLD_OUT,
    Candidate,
    FoldKernels,
    Rows,
    lambda_on_grid,
)
from hilboost.learners.kernel_machine.tuning.search import Clock, Search
from hilboost.learners.kernel_machine.tuning.table_kernel import Columns

_BYTES_OF_A_CANDIDATE = 32.0  # a squared row
_AT_ONCE = 2  # candidates that the memory budget must hold
_FEWEST_ROWS = 64
_EVENNESS = 0.2  # effective share of the rows, below which Newton steps are tried, too
_UNLIKE = 30.0  # targets whose spreads differ by more are standardized one by one
_RESOLUTION = 2.0**-30  # of standardized targets
_SMALLEST_ITERATIVE_LAMBDA = 1e-3  # below, conjugate gradients need hundreds of steps
_SMALLEST_HURRIED_LAMBDA = 1e-2  # for slow steps that a time limit may cut short
_ROWS_OF_SLOW_STEPS = 15_000


PenaltyChoice = Callable[[Workspace, Kernel, float, FoldKernels | None], tuple[float, float]]
"""Chooses λ by the loss itself, which is also returned, for a workspace, a kernel, the number of
basis vectors, and kernels that the rows of a fold did not help to choose; ``None`` if none did."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The kernel and λ of a fit."""

    in_files: ClassVar[bool] = True

    kernel: Kernel
    regularization: float  # λ
    rows: Ints | None = None  # (m,) int64 or None: rows that the choice held out
    predicted: Floats | None = None  # (m, r) float64 or None: predictions of their first gradients

    def settled(self, workspace: Workspace, weight: Floats | None) -> tuple[Workspace, float]:
        """The workspace in double precision if single rounds λ away, and a λ that is large enough.

        λ = 0 stands for the smallest one that exceeds rounding errors.
        """
        if 0 < self.regularization < self._smallest(workspace, weight):
            workspace = workspace.in_float64()
        return workspace, max(self.regularization, self._smallest(workspace, weight))

    def _smallest(self, workspace: Workspace, weight: Floats | None) -> float:
        eps = float(np.finfo(workspace.precision).eps)
        mass = 1.0 if weight is None else float(weight.mean())
        return 10 * eps * mass * mean_diagonal(self.kernel, workspace.X[:256])


def choose(
    config: KernelMachineConfig,
    workspace: Workspace,
    gradients: Gradients,
    weight: Floats | None,  # (n,) float64 or None: zero for rows outside the sample
    # number of basis vectors that the model can have, if fewer than rows
    n_effective: float = np.inf,
    # whether the fit takes conjugate gradient steps on all rows, which a small λ slows down
    iterates: bool = False,
    # chooses λ instead, for other losses than squared error
    choose_penalty: PenaltyChoice | None = None,
) -> Choice:
    """Choose what the user left open, from the gradients of the first stage.

    If few rows hold most of the curvature, as with offsets that differ by orders of magnitude, the
    gradients hide the function.  Newton steps, with the curvature as weights, may show it.
    """
    kernel, regularization = config.given_kernel, config.given_regularization
    if config.tuning == "auto" and kernel is not None and regularization is not None:
        return Choice(kernel, regularization)
    if regularization is not None or config.tuning != "auto":
        choose_penalty = None
    chosen = partial(_chosen, config, workspace, n_effective, iterates, choose_penalty)
    choice, loss = chosen(gradients, weight)
    curvature = gradients.hessian
    can_vary = choose_penalty is not None and kernel is None
    can_vary = can_vary and config.tuning_seconds is None and workspace.observed is None
    if can_vary and curvature is not None and gradients.corners is None and _is_uneven(curvature):
        steps = replace(gradients, negative_gradient=gradients.negative_gradient / curvature)
        rival, its_loss = chosen(steps, curvature[:, 0] * (1.0 if weight is None else weight))
        choice = rival if its_loss < loss else choice
    return choice


def _is_uneven(curvature: Floats) -> bool:
    """Whether few rows hold most of the curvature (n, r) of one output."""
    if curvature.shape[1] > 1 or not (curvature > 0).all():
        return False
    return bool(curvature.mean() ** 2 < _EVENNESS * (curvature**2).mean())


def _chosen(
    config: KernelMachineConfig,
    workspace: Workspace,
    n_effective: float,
    iterates: bool,
    choose_penalty: PenaltyChoice | None,
    gradients: Gradients,  # only the negative gradients are used
    weight: Floats | None,
) -> tuple[Choice, float]:
    """Choose by the gradients; also return the held-out loss, if λ was chosen by it."""
    sample = StandardizedSample.of(workspace, gradients, weight)
    # Each candidate runs on one thread: the choice is the same on any number of threads.
    with array_api.one_blas_thread(), side_by_side(workspace, len(sample.rows)) as team:
        best = _best(config, sample, n_effective, iterates, team, choose_penalty is not None)
    regularization, loss = config.given_regularization, np.inf
    if choose_penalty is not None:
        regularization, loss = choose_penalty(workspace, best.kernel, n_effective, best.folds)
    elif regularization is None:
        regularization = best.regularization * sample.mass
    return Choice(best.kernel, regularization, *sample.held_out(best)), loss


@dataclass(frozen=True, eq=False)
class StandardizedSample:
    """A random sample of the rows, its targets less their means and divided by their spreads."""

    rows: Rows
    middle: Floats  # (r,) float64: mean and spread of the targets
    spread: Floats  # (r,) float64: mean and spread of the targets
    n: int  # number of rows it was drawn from
    mass: float  # mean sample weight

    @classmethod
    def of(
        cls, workspace: Workspace, gradients: Gradients, weight: Floats | None
    ) -> StandardizedSample:
        """Draw as many rows as the memory budget allows, at most twice as many as for a fit."""
        rng = np.random.default_rng((workspace.seed, 1))
        inside = np.arange(workspace.X.shape[0]) if weight is None else np.flatnonzero(weight > 0)
        affordable = int(np.sqrt(workspace.memory / (_BYTES_OF_A_CANDIDATE * _AT_ONCE)) / 0.75)
        n_drawn = max(_FEWEST_ROWS, min(2 * ROWS_OF_HOLD_OUT, affordable))
        observed, own, dependence = workspace.observed, None, workspace.dependence
        if observed is not None:
            rows, Y = observed.rows[:n_drawn], observed.negative_gradient[:n_drawn]
            own, dependence = observed.weight, observed.dependence
            own = None if own is None else own[:n_drawn]
            dependence = dependence and dependence.rows(slice(n_drawn))
        else:
            rows = rng.permutation(inside)[:n_drawn]
            Y = gradients.negative_gradient[rows]
            own = None if weight is None else weight[rows]
            dependence = dependence and dependence.rows(rows)
        middle = Y.mean(axis=0)
        Y = Y - middle
        spread = _spread(Y)
        w = np.ones(len(rows)) if own is None else own / own.mean()
        mass = workspace.row_weight if own is None else float(own.mean())
        # Rounding errors, which depend on the unit of the targets, would lead the search astray.
        Y = np.rint(Y / spread / _RESOLUTION) * _RESOLUTION
        sampled = Rows(array_api.to_numpy(workspace.X[rows]), Y, w, rows, dependence)
        return cls(sampled, middle, spread, len(inside), mass)

    def held_out(self, best: Candidate[Any]) -> tuple[Ints | None, Floats | None]:
        """The distinct rows (m,) that a candidate held out, and predictions of their gradients."""
        if best.predicted is None or best.rows is None:
            return None, None
        predicted = self.middle + self.spread * best.predicted
        rows, first = np.unique(best.rows, return_index=True)
        if len(rows) == len(best.rows):
            return best.rows, predicted
        return rows, predicted[first]


def _spread(Y: Floats) -> Floats:
    """Divisors of centered targets (m, r); one number if their spreads are similar."""
    spread = np.sqrt((Y**2).mean(axis=0))
    varies = spread > 0
    if varies.any() and spread.max() <= _UNLIKE * spread[varies].min():
        spread[:] = np.sqrt((spread[varies] ** 2).mean())  # classes, or targets of one kind
    spread[~varies] = 1.0
    return spread


@contextmanager
def side_by_side(workspace: Workspace, n_rows: int) -> Iterator[ThreadTeam]:
    """As many threads as the memory budget has candidates for."""
    m = min(ROWS_OF_HOLD_OUT, n_rows)
    most = max(1, int(workspace.memory / (_BYTES_OF_A_CANDIDATE * m * m)))
    if most >= workspace.team.n_threads:
        yield workspace.team
        return
    with ThreadTeam(most) as team:
        yield team


def _best(
    config: KernelMachineConfig,
    sample: StandardizedSample,
    n_effective: float,
    iterates: bool,
    team: ThreadTeam,
    needs_folds: bool,
) -> Candidate[Kernel]:
    """Kernel and λ for standardized targets, by the method of the config."""
    kernel = config.given_kernel
    columns = Columns.of(sample.rows.X.shape[1], config.categorical)
    if config.tuning == "marginal_likelihood":
        return by_likelihood(kernel, columns, sample.rows)
    if config.tuning == "mean_distance":
        return lambda_on_grid(by_mean_distance(sample.rows), sample.rows, team)
    if kernel is not None:
        return lambda_on_grid(kernel, sample.rows, team)
    n = min(sample.n, n_effective)
    clock = Clock(config.tuning_seconds)
    floor = lambda_floor(config, n, iterates)
    is_wide = clock.is_wide and not config.tunes_briefly
    search = Search(columns, sample.rows, n, floor, team, clock, is_wide)
    best = search.best()
    return Candidate(
        best.kernel.plain,
        best.regularization,
        best.error,
        best.predicted,
        best.rows,
        search.folds_of(best) if needs_folds else None,
    )


def lambda_floor(config: KernelMachineConfig, n: float, iterates: bool) -> float:
    """The smallest λ for which the rest of a fit to ``n`` rows converges in time."""
    if n <= DIRECT_UP_TO:
        return SMALLEST_LAMBDA
    hurries = iterates and config.tuning_seconds is not None
    if hurries and n > _ROWS_OF_SLOW_STEPS:
        return _SMALLEST_HURRIED_LAMBDA
    return _SMALLEST_ITERATIVE_LAMBDA


Found = TypeVar("Found")


class SharedChoice(Generic[Found]):
    """The kernel and λ of all members of an ensemble.

    The choice depends on the first gradients of all rows, which are the same for all members.  The
    result is therefore the same whichever member comes first.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: Found | None = None

    def settled(self, choose: Callable[[], Found]) -> Found:
        """Return the choice of the first member that asks."""
        with self._lock:
            if self._found is None:
                self._found = choose()
            return self._found


class MemberState:
    """The state of a member of an ensemble, which has the rows and the choice of all members."""

    workspace: Workspace
    choice: Choice | None  # kernel and λ; ``None`` before the first stage if one of them is open
    conversion: Conversion | None = None  # ``None`` before the first stage
    choose_penalty: PenaltyChoice | None = None
    shared: SharedChoice[Any] | None = None

    def settled(self, choose: Callable[[], Found]) -> Found:
        """Make the choice, once for all members and all workers."""
        found = choose() if self.shared is None else self.shared.settled(choose)
        # A time limit may end the search of another worker earlier.
        exchange = self.workspace.exchange
        return found if exchange is None else exchange.first(found)

    @property
    def trial(self) -> tuple[Ints, Floats] | None:
        """Rows that the choice held out, and predictions of their first gradients."""
        choice = self.choice
        if choice is None or choice.rows is None or choice.predicted is None:
            return None
        assert self.conversion is not None
        return self.conversion.predictions(choice.rows, choice.predicted)

    def for_members(self, n_members: int, choose_penalty: PenaltyChoice | None) -> list[Self]:
        """Return the states of all members before the first stage; the first keeps the threads."""
        shared: SharedChoice[Any] | None = SharedChoice() if n_members > 1 else None
        states = []
        for k in range(n_members):
            team = self.workspace.team if k == 0 else ThreadTeam(self.workspace.team.n_threads)
            state = type(self)(replace(self.workspace, team=team))  # type: ignore[call-arg]
            state.choose_penalty, state.shared = choose_penalty, shared
            states.append(state)
        return states

"""Kernel, length scales and λ where the user chose none: from the first gradients.

Marginal likelihood on a few hundred rows gives length scales for several kernels; exact leave-one-
out and held-out errors on a few thousand decide between these and correct their scale and λ, which
the likelihood of a small subset sees too large for the whole table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np

from hilboost.backends import array_api as dense
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.core.loss import Gradients
from hilboost.kernels import (
    Constant,
    Delta,
    Gaussian,
    Kernel,
    Laplace,
    Mapped,
    Matern,
    OnColumns,
    Product,
    RationalQuadratic,
    Scaled,
    Stationary,
)
from hilboost.kernels.gram import evaluate
from hilboost.kernels.marginal_likelihood import (
    Evidence,
    maximize,
    mean_squared_distance,
)
from hilboost.learners.kernel_machine.scoring import (
    ROWS_OF_HOLD_OUT,
    Candidate,
    Sampled,
    best_lambda,
    best_scale,
    by_error,
    extrapolated,
    held_out,
    leave_one_out,
)
from hilboost.learners.kernel_machine.workspace import DIRECT_UP_TO, KernelMachineConfig, Workspace

_BYTES_OF_A_CANDIDATE = 32.0  # a squared row
_AT_ONCE = 2  # candidates that the memory budget must hold
_ROWS_FIRST = 300
_ROWS_OF_LIKELIHOOD = 1000
_ROWS_OF_LEAVE_ONE_OUT = 1000
_MOST_COLUMNS_WITH_OWN_SCALES = 64
_FAMILIES_KEPT = 3
_MAIN_FAMILIES = ("gaussian", "matern52", "laplace")
_ISOTROPIC_SCALES = (0.25, 0.35, 0.5, 0.7, 1.0, 2.0)
_SECONDS_OF_A_WIDE_SEARCH = 15.0
_STEPS_OF_A_MAP = 16
_WORTH_A_MAP = 0.95  # its d² numbers fit some noise: the more rows, the less they are worth
_MANY_TARGETS = 4
_UNLIKE = 30.0  # targets whose spreads differ more are put on one scale
_LAMBDA_OF_INDICATORS = 0.03
_SMALLEST_LAMBDA = 1e-7
_SMALLEST_ITERATIVE_LAMBDA = 1e-3  # below, conjugate gradients need hundreds of steps
_SMALLEST_HURRIED_LAMBDA = 1e-2  # steps that are dear and may be cut short must converge fast
_ROWS_OF_DEAR_STEPS = 15_000
_USUAL_SHRINKING = -0.08

_FAMILIES: dict[str, Callable[[Floats], Kernel]] = {
    "gaussian": Gaussian,
    "rational_quadratic": lambda scale: RationalQuadratic(scale, 1.0),
    "matern52": lambda scale: Matern(scale, 2.5),
    "matern32": lambda scale: Matern(scale, 1.5),
    "laplace": Laplace,
}


def choose(
    setting: KernelMachineConfig,
    data: Workspace,
    gradients: Gradients,
    weight: Floats | None,
    n_effective: float = np.inf,
    iterates: bool = False,
) -> tuple[Kernel, float]:
    """Kernel and λ of this fit; found in the first stage, kept for the others.

    Parameters
    ----------
    setting : KernelMachineConfig
    data : Workspace
    gradients : Gradients
        Only the negative gradients of the first stage are used.
    weight : (n,) float64 or None
        Zero for rows outside the sample.
    n_effective : float
        Number of basis vectors that the model can have, if fewer than rows.
    iterates : bool
        The fit takes conjugate gradient steps over all rows, which a small λ slows down.

    Returns
    -------
    kernel : Kernel
    regularization : float
    """
    if not data.is_tuned:
        sampled, middle, spread, n = _sample(data, gradients, weight)
        mass = 1.0 if weight is None else float(weight[sampled.rows].mean())
        # Candidates go side by side, each on one thread: the choice is the same on any number.
        with dense.blas_threads(1), _side_by_side(data, len(sampled)) as team:
            if setting.tuning == "marginal_likelihood":
                best = _by_likelihood(setting, sampled)
            elif setting.tuning == "mean_distance":
                kernel = _by_mean_distance(sampled)
                best = _choose_lambda(kernel, sampled, team)
            elif data.kernel is not None:
                best = _choose_lambda(data.kernel, sampled, team)
            else:
                hurries = iterates and setting.tuning_seconds is not None
                floor = _lambda_floor(min(n, n_effective), hurries)
                best = _search(setting, sampled, min(n, n_effective), floor, team)
        data.kernel = best.kernel
        data.is_tuned = True
        if best.predicted is not None and best.rows is not None:
            data.trial = data.tried(best.rows, middle + spread * best.predicted)
        if data.regularization is None:
            data.regularization = best.regularization * mass
            if data.regularize is not None and setting.tuning == "auto":
                data.regularization = data.regularize(data, data.kernel, n_effective)
    assert data.kernel is not None
    assert data.regularization is not None
    if 0 < data.regularization < _smallest_lambda(data, weight):
        data.use_float64()
    return data.kernel, max(data.regularization, _smallest_lambda(data, weight))


def _smallest_lambda(data: Workspace, weight: Floats | None) -> float:
    """λ = 0 stands for the smallest one that rounding leaves meaningful."""
    eps = float(np.finfo(data.precision).eps)
    assert data.kernel is not None
    diagonal = dense.to_numpy(data.kernel.diag(data.X[:256]))
    mass = 1.0 if weight is None else float(weight.mean())
    return 10 * eps * mass * max(float(np.abs(diagonal).mean()), 1e-300)


def _sample(
    data: Workspace, gradients: Gradients, weight: Floats | None
) -> tuple[Sampled, Floats, Floats, int]:
    """Rows to choose by, what was taken from their targets and by what these were divided, n."""
    rng = np.random.default_rng((data.seed, 1))
    inside = np.arange(data.X.shape[0]) if weight is None else np.flatnonzero(weight > 0)
    affordable = int(np.sqrt(data.memory / (_BYTES_OF_A_CANDIDATE * _AT_ONCE)) / 0.75)
    rows = rng.permutation(inside)[: max(64, min(2 * ROWS_OF_HOLD_OUT, affordable))]
    Y = gradients.negative_gradient[rows]
    middle = Y.mean(axis=0)
    Y = Y - middle
    spread = np.sqrt((Y**2).mean(axis=0))
    varies = spread > 0
    if varies.any() and spread.max() <= _UNLIKE * spread[varies].min():
        spread[:] = np.sqrt((spread[varies] ** 2).mean())  # classes, or targets of one kind
    spread[~varies] = 1.0
    w = np.ones(len(rows)) if weight is None else weight[rows] / weight[rows].mean()
    return Sampled(dense.to_numpy(data.X[rows]), Y / spread, w, rows), middle, spread, len(inside)


@contextmanager
def _side_by_side(data: Workspace, n_rows: int) -> Iterator[ThreadTeam]:
    """As many threads as the memory budget has candidates for."""
    m = min(ROWS_OF_HOLD_OUT, n_rows)
    most = max(1, int(data.memory / (_BYTES_OF_A_CANDIDATE * m * m)))
    if most >= data.team.n_threads:
        yield data.team
        return
    with ThreadTeam(most) as team:
        yield team


def _search(
    setting: KernelMachineConfig, sampled: Sampled, n: float, floor: float, team: ThreadTeam
) -> Candidate:
    """The best of several families of kernels."""
    d = sampled.X.shape[1]
    if not sampled.Y.any() or len(sampled) < 3:
        return Candidate(_start(setting, d, "gaussian", 1.0), 1e-2)
    small = sampled.first(_ROWS_OF_LEAVE_ONE_OUT)

    def scaled(candidate: Candidate, rows: Sampled = small) -> Candidate:
        raised = replace(candidate, regularization=max(candidate.regularization, floor))
        return best_scale(raised, rows)

    own = d if d <= _MOST_COLUMNS_WITH_OWN_SCALES else 1

    def likely(family: str) -> Candidate:
        return scaled(_most_likely(setting, sampled.first(_ROWS_FIRST + 10 * own), family))

    def isotropic(family: str) -> Candidate:
        return _best_isotropic(setting, small, family, floor)

    clock = _Clock(setting.tuning_seconds)
    many = sampled.Y.shape[1] > _MANY_TARGETS
    families = _FAMILIES if clock.is_wide else _MAIN_FAMILIES
    found = sorted(team.map(likely, families), key=by_error)[:_FAMILIES_KEPT]
    few_rows = len(sampled) <= 1.5 * _ROWS_OF_LEAVE_ONE_OUT
    # Rows that the likelihood has not seen, where there are enough.
    fresh = small if few_rows else sampled.part(slice(len(small), 2 * len(small)))
    mapped: list[Candidate] = []
    if len(sampled) > _ROWS_FIRST and not many:
        rows = sampled.first(_ROWS_OF_LIKELIHOOD)
        refinements = [partial(_more_likely, c, rows) for c in found[: 3 if clock.is_wide else 1]]
        if not few_rows and _can_be_mapped(found[0].kernel):
            refinements.append(partial(_mapped, found[0], rows))
        refined = team.map(lambda refinement: refinement(), refinements)
        mapped = [c for c in refined if isinstance(_innermost(c.kernel), Mapped)]
        found += team.map(scaled, [c for c in refined if c not in mapped])
        found.sort(key=by_error)
    if mapped:
        rival = leave_one_out(found[0], fresh)
        mapped = [c for c in (scaled(c, fresh) for c in mapped) if c.error < rival.error]
    if many:
        found = sorted([*found, *team.map(isotropic, _MAIN_FAMILIES)], key=by_error)
    if few_rows:
        return best_lambda(found[0], small, leave_one_out, floor, team)
    if not clock.has(0.4):
        start, rows = (mapped[0], fresh) if mapped else (found[0], small)
        best = best_lambda(start, rows, leave_one_out, floor, team)
        return replace(best, kernel=best.kernel.stretched((n / len(rows)) ** _USUAL_SHRINKING))
    distinct = {type(_innermost(c.kernel)): c for c in reversed(found)}
    candidates = sorted(distinct.values(), key=by_error)[:_FAMILIES_KEPT]
    if many:
        # A few hundred rows of each of many classes suit long length scales, all rows short ones.
        lam = max(_LAMBDA_OF_INDICATORS, floor)
        candidates[1:] = [
            Candidate(_start(setting, d, family, scale), lam)
            for family in ("gaussian", "matern52")
            for scale in (0.35, 0.5, 0.7, 1.0)
        ]
    tried = team.map(lambda c: held_out(c, sampled), [*candidates, *mapped])
    best = min(tried[: len(candidates)], key=by_error)
    for candidate in tried[len(candidates) :]:
        if candidate.error < _WORTH_A_MAP * best.error:
            best = candidate
    best = best_lambda(best, sampled, held_out, floor, team)
    return extrapolated(best, sampled, fresh, n, team)


def _lambda_floor(n: float, hurries: bool) -> float:
    """The smallest λ that the rest of the fit can bring to its end."""
    if n <= DIRECT_UP_TO:
        return _SMALLEST_LAMBDA
    if hurries and n > _ROWS_OF_DEAR_STEPS:
        return _SMALLEST_HURRIED_LAMBDA
    return _SMALLEST_ITERATIVE_LAMBDA


class _Clock:
    """How much of a number of seconds is left."""

    def __init__(self, seconds: float | None) -> None:
        self._began = time.monotonic()
        self._seconds = seconds

    @property
    def is_wide(self) -> bool:
        """Whether there is time for every family of kernels."""
        return self._seconds is None or self._seconds >= _SECONDS_OF_A_WIDE_SEARCH

    def has(self, part: float) -> bool:
        """Whether this part of the time is left; always, without a limit."""
        if self._seconds is None:
            return True
        return time.monotonic() - self._began < (1 - part) * self._seconds


def _by_likelihood(setting: KernelMachineConfig, sampled: Sampled) -> Candidate:
    """All hyperparameters of SY2006's kernel (23), or of the one given, and λ as the noise."""
    rows = sampled.first(_ROWS_OF_LIKELIHOOD)
    starts = [setting.kernel] if isinstance(setting.kernel, Kernel) else []
    for scale in () if starts else (0.5, 1.5):
        gaussian = _start(setting, rows.X.shape[1], "gaussian", scale)
        starts.append(1.0 * gaussian + Constant(0.1))
    found = [maximize(kernel, 0.1, rows.X, rows.Y) for kernel in starts]
    best = min(found, key=lambda evidence: evidence.value)
    return Candidate(best.kernel, best.noise)


def _by_mean_distance(sampled: Sampled) -> Kernel:
    """``exp(-|x - x'|²/θ)`` with θ the mean squared distance (SY2006, section 4)."""
    theta = max(mean_squared_distance(sampled.X), 1e-12)
    return Gaussian(np.sqrt(theta / 2))


def _innermost(kernel: Kernel) -> Kernel:
    """The kernel of the numeric columns."""
    while isinstance(kernel, Product | OnColumns):
        kernel = kernel.parts[0] if isinstance(kernel, Product) else kernel.kernel
    return kernel


def _with_innermost(kernel: Kernel, inner: Kernel) -> Kernel:
    """Another kernel of the numeric columns."""
    if isinstance(kernel, Product):
        return Product((_with_innermost(kernel.parts[0], inner), *kernel.parts[1:]))
    if isinstance(kernel, OnColumns):
        return OnColumns(_with_innermost(kernel.kernel, inner), kernel.columns)
    return inner


def _numeric(kernel: Kernel, d: int) -> list[int]:
    """The columns that the innermost kernel sees."""
    if isinstance(kernel, Product):
        return _numeric(kernel.parts[0], d)
    return list(kernel.columns) if isinstance(kernel, OnColumns) else list(range(d))


def _choose_lambda(kernel: Kernel, sampled: Sampled, team: ThreadTeam) -> Candidate:
    small = sampled.first(_ROWS_OF_LEAVE_ONE_OUT)
    diagonal = max(float(np.abs(kernel.diag(small.X)).mean()), 1e-300)
    grid = [Candidate(kernel, diagonal * 10.0**k) for k in range(-6, 2)]
    return min(team.map(lambda c: leave_one_out(c, small), grid), key=by_error)


def _start(setting: KernelMachineConfig, d: int, family: str, scale: float) -> Kernel:
    numeric = [k for k in range(d) if k not in setting.categorical]
    own = len(numeric) <= _MOST_COLUMNS_WITH_OWN_SCALES
    kernel: Kernel | None = None
    if numeric:
        scales = np.full(len(numeric) if own else 1, scale * np.sqrt(len(numeric)))
        kernel = _FAMILIES[family](scales)
        if not setting.categorical:
            return kernel
        kernel = OnColumns(kernel, numeric)
    delta = OnColumns(Delta(np.ones(len(setting.categorical))), list(setting.categorical))
    return delta if kernel is None else kernel * delta


def _most_likely(setting: KernelMachineConfig, rows: Sampled, family: str) -> Candidate:
    """Length scales and noise by the marginal likelihood, the better of two starts."""
    d = rows.X.shape[1]
    starts = [
        maximize(1.0 * _start(setting, d, family, scale), 0.1, rows.X, rows.Y, 30)
        for scale in (0.5, 1.5)
    ]
    return _without_amplitude(min(starts, key=lambda evidence: evidence.value))


def _more_likely(
    candidate: Candidate, rows: Sampled, max_iterations: int | None = None
) -> Candidate:
    """The same on more rows, from where the last search ended."""
    K = evaluate(candidate.kernel, rows.X, rows.X)
    factor = dense.cholesky(dense.add_to_diagonal(K, candidate.regularization))
    # The amplitude that is most likely for this kernel and noise ratio has a closed form.
    amplitude = float((dense.solve_lower(factor, rows.Y.copy()) ** 2).mean())
    noise = max(candidate.regularization * amplitude, _SMALLEST_LAMBDA)
    steps = _iterations(rows) if max_iterations is None else max_iterations
    evidence = maximize(amplitude * candidate.kernel, noise, rows.X, rows.Y, steps)
    return _without_amplitude(evidence)


def _best_isotropic(
    setting: KernelMachineConfig, rows: Sampled, family: str, floor: float
) -> Candidate:
    """One length scale for all columns by leave-one-out, for targets that no likelihood suits.

    A Gaussian process takes the indicators of many classes for nearly linear functions.
    """
    d = rows.X.shape[1]
    lam = max(_LAMBDA_OF_INDICATORS, floor)
    tried = [
        leave_one_out(Candidate(_start(setting, d, family, scale), lam), rows)
        for scale in _ISOTROPIC_SCALES
    ]
    return min(tried, key=by_error)


def _can_be_mapped(kernel: Kernel) -> bool:
    """Whether it has a length scale for each of several columns."""
    inner = _innermost(kernel)
    return isinstance(inner, Stationary) and len(inner.length_scale) > 1


def _mapped(candidate: Candidate, rows: Sampled) -> Candidate:
    """The most likely linear map in place of the length scales, which is where it starts.

    Few steps: a map has d² numbers, and later steps fit them to the noise.  They go over columns
    divided by their length scales, so that columns which mattered little move little.
    """
    inner = _innermost(candidate.kernel)
    assert isinstance(inner, Stationary)
    scales = np.ones(rows.X.shape[1])
    numeric = _numeric(candidate.kernel, len(scales))
    scales[numeric] = inner.length_scale
    start = Mapped(replace(inner, length_scale=1.0), np.eye(len(numeric)))
    found = _more_likely(
        replace(candidate, kernel=_with_innermost(candidate.kernel, start)),
        replace(rows, X=rows.X / scales),
        _STEPS_OF_A_MAP,
    )
    mapped = _innermost(found.kernel)
    assert isinstance(mapped, Mapped)
    mapped = replace(mapped, matrix=mapped.matrix / scales[numeric][:, None])
    return replace(found, kernel=_with_innermost(found.kernel, mapped))


def _iterations(rows: Sampled) -> int:
    """More length scales need more steps."""
    return int(min(60, 10 + 1.5 * rows.X.shape[1]))


def _without_amplitude(evidence: Evidence) -> Candidate:
    scaled = evidence.kernel
    assert isinstance(scaled, Scaled)
    return Candidate(scaled.kernel, max(evidence.noise / scaled.factor, _SMALLEST_LAMBDA))

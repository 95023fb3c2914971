"""The choice of amplitudes and λ for several kernels, in the first stage of a fit.

Stages of several kernels converge to the machine with the sum of these kernels.  The amplitudes of
the kernels decide how much of the function each can explain, and λ is that of the sum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hilboost.backends import array_api
from hilboost.backends.threads import ThreadTeam
from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients
from hilboost.kernels import Kernel, Precomputed, Scaled, Sum
from hilboost.kernels.gram import evaluate, mean_diagonal
from hilboost.kernels.marginal_likelihood import SharePrior, maximize
from hilboost.learners.kernel_machine.config import KernelMachineConfig, Workspace
from hilboost.learners.kernel_machine.tuning.choose import (
    Choice,
    PenaltyChoice,
    StandardizedSample,
    lambda_floor,
    side_by_side,
)
from hilboost.learners.kernel_machine.tuning.likelihood import START_NOISE, by_likelihood
from hilboost.learners.kernel_machine.tuning.scoring import (
    ROWS_OF_LEAVE_ONE_OUT,
    Candidate,
    Rows,
    best_lambda,
    by_error,
    leave_one_out,
)
from hilboost.learners.kernel_machine.tuning.table_kernel import Columns

_ROWS_OF_AMPLITUDES = 500


def choose_several(
    config: KernelMachineConfig,
    kernels: tuple[Kernel, ...],  # all different
    workspace: Workspace,
    gradients: Gradients,  # only the negative gradients are used
    weight: Floats | None,  # (n,) float64 or None: zero for rows outside the sample
    # whether the fit takes conjugate gradient steps on all rows, which a small λ slows down
    iterates: bool = False,
    # chooses λ instead, for other losses than squared error
    choose_penalty: PenaltyChoice | None = None,
) -> tuple[tuple[Kernel, ...], Choice]:  # the kernels with their amplitudes, and their sum
    """Choose what the user left open, from the gradients of the first stage.

    The order of the kernels has no effect on the choice.  If λ is given, the kernels are used as
    they are.  Otherwise their amplitudes maximize the posterior density of the sum on 500 rows, the
    marginal likelihood times a prior in favor of equal shares, and λ minimizes the leave-one-out
    error of the sum.  With ``tuning="marginal_likelihood"``, the hyperparameters of the kernels are
    fitted as well.
    """
    given = config.given_regularization
    if config.tuning == "auto" and given is not None:
        return kernels, Choice(Sum(kernels), given)
    sample = StandardizedSample.of(workspace, gradients, weight)
    order = _canonical_order(kernels, sample.rows)
    ordered = [kernels[k] for k in order]
    floor = lambda_floor(config, sample.n, iterates)
    with array_api.one_blas_thread(), side_by_side(workspace, len(sample.rows)) as team:
        if config.tuning == "marginal_likelihood":
            columns = Columns.of(sample.rows.X.shape[1], config.categorical)
            best = by_likelihood(_unit_sum(ordered, sample.rows.X), columns, sample.rows)
        else:
            best = _by_amplitudes(ordered, sample.rows, floor, team)
    found = best.kernel.parts  # type: ignore[attr-defined]
    chosen = tuple(found[order.index(k)] for k in range(len(kernels)))
    if given is not None:
        return chosen, Choice(Sum(chosen), given)
    regularization = best.regularization * sample.mass
    if choose_penalty is not None and config.tuning == "auto":
        regularization, _ = choose_penalty(workspace, best.kernel, np.inf, None)
    return chosen, Choice(Sum(chosen), regularization, *sample.held_out(best))


def _unit_sum(kernels: Sequence[Kernel], X: Floats) -> Sum:
    """The sum of the kernels, each with the same mean of k(x, x)."""
    X = X[:ROWS_OF_LEAVE_ONE_OUT]
    sizes = [mean_diagonal(kernel, X) * len(kernels) for kernel in kernels]
    return Sum(
        tuple(
            Scaled(kernel, 1 / size if size > 0 else 1.0)
            for kernel, size in zip(kernels, sizes, strict=True)
        )
    )


def _by_amplitudes(
    kernels: Sequence[Kernel], sampled: Rows, floor: float, team: ThreadTeam
) -> Candidate[Kernel]:
    """The sum of the kernels with the most probable amplitudes, and the best λ."""
    start = _unit_sum(kernels, sampled.X)
    if not sampled.Y.any() or len(sampled) < 3:
        return Candidate(start, 1e-2)
    rows = sampled.first(_ROWS_OF_AMPLITUDES)
    numbers = np.arange(len(rows), dtype=np.float64)[:, None]
    looked_up = Sum(
        tuple(
            Scaled(Precomputed(evaluate(part.kernel, rows.X, rows.X)), part.factor)
            for part in start.parts
        )
    )
    # The likelihood counts every target; correlated ones tell less about the kernels.
    strength = rows.Y.shape[1] / effective_number(rows.Y)
    prior = SharePrior(looked_up.log_parameters, strength)
    found = maximize(looked_up, START_NOISE, numbers, rows.Y, prior=prior)
    factors = [part.factor for part in found.kernel.parts]
    parts = [Scaled(kernel, factor) for kernel, factor in zip(kernels, factors, strict=True)]
    rows = sampled.first(ROWS_OF_LEAVE_ONE_OUT)
    total = Sum(tuple(parts))
    # The most likely noise of a few rows can be almost 0, from where the search goes not far.
    starts = [
        leave_one_out(Candidate[Kernel](total, max(noise, floor)), rows)
        for noise in (found.noise, START_NOISE)
    ]
    return best_lambda(min(starts, key=by_error), rows, leave_one_out, floor, team)


def effective_number(Y: Floats) -> float:
    """The participation ratio of the targets (n, c): c if they are uncorrelated, 1 if all equal."""
    squares = (Y.T @ Y) if Y.shape[1] <= len(Y) else (Y @ Y.T)
    return float(np.trace(squares) ** 2 / np.maximum((squares**2).sum(), 1e-300))


def _canonical_order(kernels: Sequence[Kernel], sampled: Rows) -> list[int]:
    """An order that does not depend on that of the list: sums of floats depend on their order."""
    X = sampled.X[:_ROWS_OF_AMPLITUDES]

    def key(k: int) -> tuple[float, float]:
        K = evaluate(kernels[k], X, X)
        return float(K.sum()), float((K * K).sum())

    return sorted(range(len(kernels)), key=key)

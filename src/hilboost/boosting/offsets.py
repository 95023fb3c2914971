"""The best constant beside given offsets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hilboost.backends.exact_sums import quotient
from hilboost.boosting.evaluate import checked, checked_initial_raw
from hilboost.core.dtypes import Floats
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.reductions.sums import count_rows, extremes, mass_of, mean, total, total_of
from hilboost.validation.offsets import check_outputs, warn_of_exposures

_STEPS, _HALVINGS = 50, 20
_TOLERANCE = 1e-9
_LARGEST_LOGARITHM = 30.0  # of an exposure
_MOST_COMPARED = 50_000  # rows
_ERRORS_OF_ONE_ROW = 20  # decreasing with the root of the number of rows
# Standard errors by which logarithms of exposures have to predict better than multiples of them, in
# large tables; in small ones, many more, because errors are not normal.
_LEAST_GAINS = {0.0: 2.0, 1.0: 0.7, 0.25: -0.3, 0.5: -0.3, 0.75: -0.3}


def starting_constant(loss: Loss, target: Target) -> Floats:
    """Return the constant from which a fit starts, (r,) float64, beside the offsets.

    It is the loss's own constant if there are no offsets, or if only differences of ``raw`` count.
    Otherwise, Newton steps find it, halved until they decrease the loss, or the leaf value of all
    rows.
    """
    start = checked_initial_raw(loss, target)
    offset = target.offset
    check_outputs(offset, len(start))
    if offset is None or loss.couples_rows or loss.has_distribution:
        return start
    if loss.link is not None and loss.link.smallest == 0:
        _look_for_exposures(loss, target, start)
    return _beside_offsets(loss, target, offset, start)


def _look_for_exposures(loss: Loss, target: Target, start: Floats) -> None:
    """Warn if the offsets of all workers look like exposures instead of their logarithms."""
    least, most = range_of(target) or (0.0, 0.0)
    if not 0 < least < most:
        return
    if most > _LARGEST_LOGARITHM or _logarithms_fit(loss, target, start, most):
        warn_of_exposures(least, most)


def range_of(target: Target) -> tuple[float, float] | None:
    """Return the smallest and the largest offset of all workers, if there are any."""
    if target.offset is None:
        return None
    return extremes(target.offset, target)


def _logarithms_fit(loss: Loss, target: Target, start: Floats, most: float) -> bool:
    """Whether constants predict better beside logarithms of positive offsets than otherwise.

    Otherwise: without the offsets or beside them, where the difference has to be clear, and beside
    parts of them.  Offsets of at most 1 are years, unless they clearly predict better.  The test is
    that of Vuong (1989) for models that are not nested: mean and standard error of the differences
    between the losses of each row.
    """
    step = -(-target.n_rows // _MOST_COMPARED)
    compared = target.numbers % step == 0
    target, n = target.rows(np.flatnonzero(compared)), count_rows(compared, target)
    offset = target.offset
    assert offset is not None
    lowest = _losses(loss, target, np.log(offset), start)

    def is_better_than(factor: float, errors: float) -> bool:
        gains = (_losses(loss, target, factor * offset, start) - lowest)[:, None]
        gain = mean(target.with_y(gains))
        error = np.sqrt(mean(target.with_y((gains - gain) ** 2)) / n)
        return bool(gain[0] > (errors + _ERRORS_OF_ONE_ROW / np.sqrt(n)) * error[0])

    least_gains = {0.0: -2.0, 1.0: -2.0} if most <= 1 else _LEAST_GAINS
    return all(is_better_than(factor, errors) for factor, errors in least_gains.items())


def _losses(loss: Loss, target: Target, offset: Floats, start: Floats) -> Floats:
    """Losses (n,) of the best constant beside other offsets."""
    target = replace(target, offset=offset)
    raw = target.starting_raw(_beside_offsets(loss, target, offset, start))
    now = loss.adapted(target, raw)
    return np.asarray(now.value(target, raw))


def _beside_offsets(loss: Loss, target: Target, offset: Floats, start: Floats) -> Floats:
    """Return the best constant beside the offsets of the target, found from the one without."""
    start = start - mean(target.with_y(offset))
    if loss.has_leaf_values:
        return start + _leaf_value(loss, target, target.starting_raw(start))
    lowest, step = np.inf, np.zeros_like(start)
    for _ in range(_STEPS):
        for _ in range(_HALVINGS):
            raw = target.starting_raw(start + step)
            now = loss.adapted(target, raw)
            value = _total(now, target, raw)
            if value <= lowest and np.isfinite(value):
                break
            step = step / 2
        else:
            return start
        start, lowest = start + step, np.inf if loss.adaptive else value
        step = _newton_step(now, target, raw)
        if (np.abs(step) <= _TOLERANCE * (1 + np.abs(start))).all():
            break
    return start


def _total(loss: Loss, target: Target, raw: Floats) -> float:
    """The sum of the loss, infinite where it exceeds the range of float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.asarray(loss.value(target, raw))
    if count_rows(~np.isfinite(values), target):
        return np.inf
    return total(values, target)


def _newton_step(loss: Loss, target: Target, raw: Floats) -> Floats:
    found = checked(loss, loss.gradients(target, raw), raw.shape)
    steps = np.zeros(raw.shape[1])
    for k in range(raw.shape[1]):
        top = total_of(found.negative_gradient[:, k], target)
        if found.hessian is None:
            below = mass_of(target)
        else:
            below = total_of(found.hessian[:, k], target)
        steps[k] = quotient(top, below) if below.any() else 0.0
    return steps


def steps_beside_offsets(
    loss: Loss, start: Floats, target: Target, rows: NDArray[np.uint32] | None = None
) -> Target:
    """Return the Newton step (n, r) of each row from the start, with its hessian as weight.

    With a logarithmic link, the mean of a level is its total divided by its total exposure.
    """
    raw = target.starting_raw(start)
    now = loss.adapted(target, raw)
    found = checked(now, now.gradients(target, raw), raw.shape)
    if found.hessian is None:
        return target.with_y(found.negative_gradient)
    hessian = found.hessian.mean(axis=1, keepdims=True)
    scale = mean(target.with_y(hessian))[0]
    weight = hessian[:, 0] / (scale if scale > 0 else 1.0)
    steps = np.divide(found.negative_gradient, hessian, out=np.zeros_like(raw), where=hessian > 0)
    own = weight if target.weight is None else weight * target.weight
    return replace(target.with_y(steps), weight=own)


def _leaf_value(loss: Loss, target: Target, raw: Floats) -> Floats:
    everywhere = np.zeros(len(raw), dtype=np.int32)
    now = loss.adapted(target, raw)
    return now.leaf_values(target, raw, everywhere, 1, slice(0, raw.shape[1]))[0]

"""The effect of the position at which a row was shown, estimated together with the scores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hilboost.backends.exact_sums import sums_of_groups
from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients
from hilboost.core.target import Target

_STEPS, _LONGEST_STEP = 5, 1.0
_RIDGE = 1e-2  # of the mean hessian of a position


def position_effects(
    gradients: Callable[[Target, Floats], Gradients], target: Target, raw: Floats
) -> Floats:  # (n_positions,) float64: zero for the first position
    """Estimate what each position adds to the scores, in a few Newton steps.

    ``gradients``: of a target and scores (n, 1), without effects of positions. ``target``: with
    positions. ``raw``: (n, 1) float64.
    """
    positions = target.positions
    assert positions is not None
    n_positions = int(positions.max()) + 1
    effects = np.zeros(n_positions)
    for _ in range(_STEPS):
        found = gradients(target, raw + effects[positions][:, None])
        negative = found.negative_gradient
        hessian = np.ones_like(negative) if found.hessian is None else found.hessian
        top, below = (
            sums_of_groups(
                positions, np.ascontiguousarray(values[:, 0]), target.weight, n_positions
            )
            for values in (negative, hessian)
        )
        if not below.any():
            break
        ridge = _RIDGE * below.mean()
        step = (top - ridge * effects) / (below + ridge)
        effects += np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        effects -= effects[0]
    return effects

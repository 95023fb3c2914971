"""Split-conformal prediction intervals (Vovk et al. 2005; Lei et al. 2018)."""

from __future__ import annotations

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData

_ROUNDING = 1e-9


def conformal_factor(scores: Floats, coverage: float) -> Floats:
    """Compute the factor of the half widths of intervals, one for each output.

    Parameters
    ----------
    scores : (n, r) float64
        ``|y - f(x)|`` divided by the half width, on rows that the model was not fitted to.
    coverage : float in (0, 1)

    Returns
    -------
    (r,) float64
        The ``ceil((n + 1) coverage)``-th smallest score.  For exchangeable rows, intervals contain
        a new ``y`` with at least this probability.

    Raises
    ------
    InvalidData
        There are too few rows for this coverage.
    """
    n = len(scores)
    rank = int(np.ceil((n + 1) * coverage - _ROUNDING))
    if rank > n:
        needed = int(np.ceil(coverage / (1 - coverage) - _ROUNDING))
        raise InvalidData(
            f"a coverage of {coverage:g} requires at least {needed} calibration rows; got {n}. "
            "Calibrate with more rows, or lower the coverage."
        )
    return np.sort(scores, axis=0)[rank - 1]

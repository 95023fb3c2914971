"""Split-conformal prediction intervals (Vovk et al. 2005; Lei et al. 2018)."""

from __future__ import annotations

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData

_ROUNDING = 1e-9


def conformal_factor(scores: Floats, coverage: float) -> Floats:
    """What an interval's half width is multiplied by, one an output.

    Parameters
    ----------
    scores : (n, r) float64
        ``|y - f(x)|`` in units of the half width, on rows the model was not fitted to.
    coverage : float in (0, 1)

    Returns
    -------
    (r,) float64
        The ``ceil((n + 1) coverage)``-th smallest score: for exchangeable rows, intervals hold a
        new ``y`` with at least this probability.

    Raises
    ------
    InvalidData
        Too few rows for this coverage.
    """
    n = len(scores)
    rank = int(np.ceil((n + 1) * coverage - _ROUNDING))
    if rank > n:
        needed = int(np.ceil(coverage / (1 - coverage) - _ROUNDING))
        raise InvalidData(
            f"a coverage of {coverage:g} needs at least {needed} rows to calibrate with; there "
            f"were {n}. Calibrate with more rows, or lower the coverage."
        )
    return np.sort(scores, axis=0)[rank - 1]

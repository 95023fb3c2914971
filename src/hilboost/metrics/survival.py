"""Metrics of survival times."""

from __future__ import annotations

import numpy as np

from hilboost.backends.survival import concordant_pairs
from hilboost.core.dtypes import Floats
from hilboost.core.metric import Metric, MetricParts
from hilboost.core.target import Target


class Concordance(Metric):
    """Harrell's C: the fraction of comparable pairs in which the first failure has more risk.

    Notes
    -----
    Pairs of equal risk count one half.  Rows are compared within their stratum.  The cost is
    O(n log n).

    References
    ----------
    Harrell, Lee & Mark, *Multivariable prognostic models*, Statistics in Medicine 15, 1996.
    """

    names = ("concordance", "c_index")
    kind = "survival"
    higher_is_better = True
    couples_rows = True

    def parts(self, target: Target, predicted: Floats) -> MetricParts:
        """Fraction of the pairs of each stratum, weighted by the number of pairs."""
        strata = target.y[:, 3]
        parts = (strata == s for s in np.unique(strata))
        found = [_pairs(target.rows(here), predicted[here]) for here in parts]
        totals = np.array([one for one in found if one[2] > 0]).reshape(-1, 3)
        return MetricParts((totals[:, 0] + 0.5 * totals[:, 1]) / totals[:, 2], totals[:, 2])


def _pairs(target: Target, predicted: Floats) -> Floats:
    """Weights of concordant pairs, ties, and all pairs, (3,)."""
    time = target.y[:, 0]
    order = np.argsort(-time, kind="stable")
    event = target.y[order, 0] == target.y[order, 1]
    weight = target.row_weights[order]
    levels, rank = np.unique(predicted[order, 0], return_inverse=True)
    ends = np.append(np.flatnonzero(np.diff(time[order])) + 1, len(time))
    totals, tree = np.empty(3), np.zeros(len(levels) + 1)
    concordant_pairs(ends, event, rank.astype(np.int64) + 1, weight, tree, totals)
    return totals

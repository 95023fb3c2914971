"""How well scores of pairs tell links from others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_curve

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.network.validation import as_matrix, refuse_unfinished


@dataclass(frozen=True)
class LinkCurves:
    """ROC and precision-recall curves over pairs of vertices.

    Attributes
    ----------
    false_positive_rate, true_positive_rate : (k,) float64
    precision, recall : (k',) float64
    auroc : float
        Area under the ROC curve.
    average_precision : float
        Area under the precision-recall curve, by steps.
    n_pairs, n_links : int
    """

    false_positive_rate: Floats
    true_positive_rate: Floats
    precision: Floats
    recall: Floats
    auroc: float
    average_precision: float
    n_pairs: int
    n_links: int


def link_curves(links: Any, scores: Any, *, within: bool = False) -> LinkCurves:
    """Curves of the scores of pairs.

    Parameters
    ----------
    links : array-like or sparse (m, n)
        Not zero where there is a link.
    scores : array-like (m, n)
        Higher for pairs more likely to be linked.
    within : bool
        Rows and columns are the same vertices: count every pair once, and none with itself.

    Returns
    -------
    LinkCurves

    Raises
    ------
    InvalidData
        Shapes differ, an entry is missing or infinite, or all pairs are linked, or none.
    """
    truth, values = as_matrix(links, "links"), as_matrix(scores, "scores")
    if truth.shape != values.shape:
        raise InvalidData(
            f"links and scores must be matrices of one shape; got {truth.shape} and {values.shape}."
        )
    pairs = np.ones(truth.shape, dtype=bool)
    if within:
        if truth.shape[0] != truth.shape[1]:
            raise InvalidData(f"within=True takes square matrices; got {truth.shape}.")
        pairs = np.triu(pairs, 1)
    refuse_unfinished(np.where(pairs, truth, 0.0), "links")
    refuse_unfinished(np.where(pairs, values, 0.0), "scores")
    truth, values = truth[pairs] != 0, values[pairs]
    n_links = int(truth.sum())
    if n_links in (0, len(truth)):
        raise InvalidData(
            f"{n_links} of {len(truth)} pairs are linked; curves need both, links and others."
        )
    false_positive, true_positive, _ = roc_curve(truth, values)
    precision, recall, _ = precision_recall_curve(truth, values)
    return LinkCurves(
        false_positive,
        true_positive,
        precision,
        recall,
        float(auc(false_positive, true_positive)),
        float(average_precision_score(truth, values)),
        len(truth),
        n_links,
    )

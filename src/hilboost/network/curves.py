"""ROC and precision-recall curves of link scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_curve

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.core.records import brief_repr
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
        Area under the precision-recall curve, as a step function.
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

    __repr__ = brief_repr


def link_curves(links: object, scores: object, *, within: bool = False) -> LinkCurves:
    """Compute ROC and precision-recall curves of link scores.

    Parameters
    ----------
    links : array-like or sparse (m, n)
        Nonzero entries are links.
    scores : array-like (m, n)
        Higher scores mean more likely links.
    within : bool
        Set if rows and columns are the same vertices; counts each pair once and ignores the
        diagonal.

    Returns
    -------
    LinkCurves

    Raises
    ------
    InvalidData
        If the shapes differ, an entry is missing or infinite, or all or no pairs are linked.
    """
    return curves_of_blocks([(links, scores, within)])


def curves_of_blocks(blocks: Sequence[tuple[Any, Any, bool]]) -> LinkCurves:
    """Compute the curves of pairs in several matrices, ranked together."""
    pairs = [_pairs(links, scores, within) for links, scores, within in blocks]
    truth = np.concatenate([linked for linked, _ in pairs])
    values = np.concatenate([scores for _, scores in pairs])
    n_links = int(truth.sum())
    if n_links in (0, len(truth)):
        raise InvalidData(
            f"{n_links} of {len(truth)} pairs are linked; pass both linked and unlinked pairs."
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


def _pairs(links: object, scores: object, within: bool) -> tuple[NDArray[np.bool_], Floats]:
    """Validate a block: which of its pairs are linked, (k,), and their scores, (k,)."""
    truth, values = as_matrix(links, "links"), as_matrix(scores, "scores")
    if truth.shape != values.shape:
        raise InvalidData(
            f"links and scores must have the same shape; got {truth.shape} and {values.shape}."
        )
    pairs = np.ones(truth.shape, dtype=bool)
    if within:
        if truth.shape[0] != truth.shape[1]:
            raise InvalidData(f"within=True requires square matrices; got shape {truth.shape}.")
        pairs = np.triu(pairs, 1)
    refuse_unfinished(np.where(pairs, truth, 0.0), "links")
    refuse_unfinished(np.where(pairs, values, 0.0), "scores")
    return truth[pairs] != 0, values[pairs]

"""Probabilities that labels belong to their rows, for training labels some of which are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.utils import _safe_indexing, check_random_state

from hilboost.core.dtypes import Floats, Seed
from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType
from hilboost.estimators.output_kernel import OutputKernelEstimator
from hilboost.outputs import as_output
from hilboost.outputs.distances import to_points
from hilboost.tables.arrays import n_rows
from hilboost.validation.targets import as_sequence

_DRAWS = 10  # labels of other rows, for each row
_FAR = np.linspace(0.4, 0.95, 12)  # quantiles of the distances of labels of other rows
_MOST_WRONG = 0.5


def label_weights(
    model: OutputKernelEstimator, X: object, y: Any, *, cv: int = 5, random_state: Seed = None
) -> Floats:
    """Estimate for each row the probability that its label is not that of another row.

    Pass the result as ``sample_weight`` to fit a model that wrong labels disturb less.

    Parameters
    ----------
    model : estimator of an output space
        Not fitted by this function; clones of it are.
    X : array-like (n, d)
    y : sequence of n labels
    cv : int, default=5
        Number of folds.  The labels of a fold are compared with predictions of a model of the other
        folds.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    (n,) float64
        Between 0 and 1.

    Raises
    ------
    InvalidType, InvalidParameter, InvalidData
        The model has no output space, ``cv`` is not between 2 and n, or ``y`` is a Gram matrix.

    Notes
    -----
    A wrong label is taken for that of a random other row.  The distances of such labels from the
    predictions are known, because labels can be drawn.  The distances of the labels of the rows
    themselves are a mixture of these and of shorter ones.  The share of wrong labels is the
    smallest ratio of the frequencies of both kinds beyond a long distance, and the ratio of their
    densities is estimated by isotonic regression.  If right and wrong labels have similar
    distances, the share is overestimated, and all weights are similar.
    """
    if not isinstance(model, OutputKernelEstimator):
        raise InvalidType(
            f"label_weights requires a model of an output space, such as "
            f"OutputKernelBoostingRegressor; got {type(model).__name__}."
        )
    space = as_output(model.output)
    if space.predicts_rows:
        raise InvalidData(
            "label_weights does not support Gram matrices of outputs; pass labels and an output "
            "space or a kernel."
        )
    y, n = as_sequence(y), int(n_rows(X) or 0)
    if not 2 <= cv <= n:
        raise InvalidParameter(f"cv must be between 2 and the number of rows, {n}; got {cv}.")
    rng = check_random_state(random_state)
    folds = rng.permutation(n) % cv
    drawn = rng.randint(n, size=(_DRAWS, n))
    own, others = np.empty(n), np.empty((_DRAWS, n))
    for fold in range(cv):
        known, held = (np.flatnonzero((folds == fold) == side) for side in (False, True))
        fitted = clone(model).fit(_safe_indexing(X, known), space.take_rows(y, known))
        raw = fitted.predict_embedding(_safe_indexing(X, held))
        own[held] = to_points(fitted.output_, space.take_rows(y, held), raw)
        for distances, labels in zip(others, drawn, strict=True):
            distances[held] = to_points(fitted.output_, space.take_rows(y, labels[held]), raw)
    return _probabilities(own, others.ravel())


def _probabilities(own: Floats, others: Floats) -> Floats:
    """Probability that labels at these distances (n,) are none of the others (m,)."""
    far = np.quantile(others, _FAR)
    beyond = np.array([[float((d >= t).mean()) for t in far] for d in (own, others)])
    share = min(float((beyond[0] / np.maximum(beyond[1], 1e-12)).min()), _MOST_WRONG)
    distances = np.concatenate([own, others])
    is_own: NDArray[np.bool_] = np.arange(len(distances)) < len(own)
    weight = np.where(is_own, 1 / len(own), 1 / len(others))
    curve = IsotonicRegression(increasing=False, y_min=1e-6, y_max=1 - 1e-6)
    part = curve.fit(distances, is_own.astype(float), sample_weight=weight).predict(own)
    return np.asarray(np.clip(1 - share * (1 - part) / part, 0.0, 1.0))

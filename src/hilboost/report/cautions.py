"""Sentences of a report about what makes its results unreliable."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilboost.report.evaluation import Rows
from hilboost.report.influence import mean_loss

_FEW_ROWS = 30
_SHARE = 0.1  # of training rows among the rows of the report, above which they are mentioned


def cautions(rows: Rows, drift: dict[str, Any] | None) -> list[str]:
    """Say whether the rows are few, or training rows.

    ``drift``: comparison with training rows that the user passed.
    """
    n, found = len(rows.raw), []
    if n < _FEW_ROWS:
        found.append(f"Only {n} rows: the results are unreliable.")
    known = None if drift is None else drift["in_both"] / n
    if has_training_loss(rows):
        found.append(
            "The loss on these rows equals the training loss, so they are most likely the "
            "training data and the results are too good. Use held-out data instead."
        )
        known = known or 0.0
    marks = rows.model.fitted_.marks
    if known is None and marks is not None:
        known = marks.share_of(rows.model._checked(rows.columns.source))
    if known is not None and known > _SHARE:
        found.append(
            f"{known:.0%} of these {n} rows also occur in the training data. If they are the same "
            "observations, the results are too good; use held-out data instead."
        )
    return found


def has_training_loss(rows: Rows) -> bool:
    """Whether the mean loss is that of the training rows."""
    history = rows.model.fitted_.history
    if history is None or len(rows.raw) < 2:
        return False
    kept = min(int(rows.model.n_estimators_), len(history.train) - 1)
    mean = mean_loss(rows.model, rows.target, rows.raw)
    return bool(np.isclose(mean, history.train[kept], rtol=1e-7, atol=0))

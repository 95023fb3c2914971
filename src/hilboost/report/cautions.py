"""Sentences of a report about what makes its results unreliable."""

from __future__ import annotations

import numpy as np

from hilboost.model.row_marks import RowMarks
from hilboost.report.evaluation import Rows
from hilboost.report.influence import mean_loss
from hilboost.report.table import Columns

_FEW_ROWS = 30
_SHARE = 0.1  # of training rows among the rows of the report, above which they are mentioned


def cautions(rows: Rows, training: Columns | None, in_both: int | None) -> list[str]:
    """Say whether the rows are few, or training rows.

    ``training``: rows that the user passed. ``in_both``: number of rows that are among them.
    """
    n, found = len(rows.raw), []
    if n < _FEW_ROWS:
        found.append(f"Only {n} rows: the results are unreliable.")
    same_loss = has_training_loss(rows)
    if same_loss:
        found.append(
            "The loss on these rows equals the training loss, so they are most likely the "
            "training data and the results are too good. Use held-out data instead."
        )
    marks, checked = rows.model.fitted_.marks, rows.model._checked
    if marks is None and training is not None:
        marks = RowMarks.of(checked(training.source))
    known = None if in_both is None else in_both / n
    if marks is not None and not (same_loss and training is None):
        known = marks.leaked_share(checked(rows.columns.source))
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

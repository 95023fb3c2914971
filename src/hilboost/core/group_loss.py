"""Interface of losses over groups of rows."""

from __future__ import annotations

from hilboost.core.loss import Loss


class GroupLoss(Loss):
    """Base class of losses in which the loss of a row depends on other rows.

    These are the rows of its group, or all rows if the target has no groups.  Blocks of rows
    consist of whole groups.  The sum of ``value`` over the rows of a group is the loss of the
    group, and the mean loss is that of the groups.  Rows of zero weight must not have an effect on
    others.
    """

    couples_rows = True

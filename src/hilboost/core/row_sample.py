"""The rows to which a stage is fitted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dependence import Dependence
from hilboost.core.dtypes import Floats


@dataclass(frozen=True)
class RowSample:
    """Rows to which a stage is fitted.

    Attributes
    ----------
    rows : (m,) uint32 or None
        Row numbers in ascending order; ``None`` means all rows.
    weight : (n,) float64 or None
        Weights of all rows, multiplied by the counts of a bootstrap sample; ``None`` means one
        for each row.
    apart : (a,) uint32 or None
        Rows that no stage of the model is fitted to, by which proposals may be compared; ``None``
        if there are none.
    stage : int
        Number of the stage.
    rate : float or None
        Factor of the outputs; ``None`` if it is not known yet.
    dependence : Dependence or None
        By what learners hold out rows of the table, if not at random.
    """

    rows: NDArray[np.uint32] | None
    weight: Floats | None
    apart: NDArray[np.uint32] | None = None
    stage: int = 0
    rate: float | None = None
    dependence: Dependence | None = None

    def weights_of_all(self, n: int) -> Floats | None:
        """Compute the weight of every row, which is 0 outside the sample.

        Parameters
        ----------
        n : int
            Number of rows of the table.

        Returns
        -------
        (n,) float64 or None
            ``None`` means one for each row.
        """
        if self.rows is None:
            return self.weight
        weight = np.zeros(n)
        weight[self.rows] = 1.0 if self.weight is None else self.weight[self.rows]
        return weight

"""Survival models: the encoding of times, and what turns risks into survival functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.losses._survival import CAUSE, UPPER
from hilboost.model.codecs import TargetCodec
from hilboost.validation.survival import (
    SurvivalLabels,
    check_entry,
    check_strata,
    check_times,
)


@dataclass(frozen=True)
class SurvivalCodec(TargetCodec):
    """Codec of survival times: lower and upper bound, entry time, and number of the stratum.

    Attributes
    ----------
    strata_labels : (s,) array or None
        Labels of the strata, sorted; ``None`` without strata.
    n_causes : int
        Number of causes of events.
    ends : (m,) float64 or None
        Ends of the intervals of discrete hazards.
    """

    kind = "survival"
    strata_labels: NDArray[Any] | None = None
    n_causes: int = 1
    ends: Floats | None = None

    @classmethod
    def learn(
        cls, y: SurvivalLabels, n: int, n_intervals: int | None = None
    ) -> tuple[SurvivalCodec, Floats]:
        """Return the codec and the encoded training target.

        The intervals, if there are any, hold about the same number of events.
        """
        labels = None if y.strata is None else np.unique(check_strata(y.strata, n))
        lower, upper, cause = check_times(y.times, n)
        n_causes = max(1, int(cause.max(initial=1)))
        ends = None
        if n_intervals is not None:
            times = lower[np.isfinite(upper) & (lower > 0)]
            levels = np.arange(1, n_intervals + 1) / n_intervals
            ends = (
                np.unique(np.quantile(times, levels, method="inverted_cdf")) if len(times) else None
            )
        codec = cls(labels, n_causes, ends)
        return codec, codec.encode(y, n)

    def n_outputs(self, loss: Loss) -> int:
        """Return one, or the number of intervals of all causes."""
        return 1 if self.ends is None else len(self.ends) * self.n_causes

    def encode(self, y: Any, n: int, allow_missing: bool = False) -> Floats:
        """Return bounds, entry times and strata, (n, 4), and causes, if there are several."""
        y = y if isinstance(y, SurvivalLabels) else SurvivalLabels(y)
        lower, upper, cause = check_times(y.times, n)
        if cause.max(initial=0) > self.n_causes:
            raise InvalidData(
                f"y contains the cause {cause.max():g}, but the training rows contain "
                f"{self.n_causes}; pass the causes of the fit."
            )
        causes = [cause] if self.n_causes > 1 else []
        entry = np.zeros(n) if y.entry is None else check_entry(y.entry, lower, n)
        return np.column_stack([lower, upper, entry, self.strata_numbers(y.strata, n), *causes])

    def strata_numbers(self, strata: Any, n: int) -> Floats:
        """Return the number of the stratum of each row, (n,).

        Raises
        ------
        InvalidData
            Strata are missing, or not those of the fit.
        """
        if self.strata_labels is None:
            if strata is not None:
                raise InvalidData("the model was fitted without strata; pass none.")
            return np.zeros(n)
        if strata is None:
            raise InvalidData("the model was fitted with strata; pass the stratum of each row.")
        found = check_strata(strata, n)
        places = np.searchsorted(self.strata_labels, found)
        places = np.minimum(places, len(self.strata_labels) - 1)
        unknown = self.strata_labels[places] != found
        if unknown.any():
            raise InvalidData(
                f"strata contains {found[unknown].tolist()[0]!r}, which is not one of the strata "
                f"of the fit, {self.strata_labels.tolist()}."
            )
        return places.astype(np.float64)

    def strata(self, target: Target) -> NDArray[Any]:
        """Use censored rows and events of each cause as strata of held-out parts."""
        event = np.isfinite(target.y[:, UPPER]).astype(np.float64)
        return target.y[:, CAUSE] if self.n_causes > 1 else event

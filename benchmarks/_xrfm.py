"""xRFM with the interface of scikit-learn, and with the preparation that its authors ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

VALIDATION_SHARE = 0.2
LIMIT = 300.0
"""Seconds after which xRFM stops its search."""


class XRFM:
    """xRFM at its defaults, on standardized columns, tuned on a fifth of the training rows.

    Missing values become the mean of their column.
    """

    def __init__(self, *, regression: bool, random_state: int, threads: int) -> None:
        self.regression, self.random_state, self.threads = regression, random_state, threads

    def fit(self, X: np.ndarray, y: np.ndarray) -> XRFM:
        import torch
        from xrfm import xRFM

        torch.set_num_threads(self.threads)
        self._mean, self._scale = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        self._scale[self._scale == 0] = 1.0
        y = np.asarray(y, np.float32) if self.regression else y
        strata = None if self.regression else y
        train, held_out, y_train, y_held_out = train_test_split(
            self._prepared(X),
            y,
            test_size=VALIDATION_SHARE,
            random_state=self.random_state,
            stratify=strata,
        )
        self._model: Any = xRFM(
            device="cpu",
            verbose=False,
            time_limit_s=LIMIT,
            n_threads=self.threads,
            random_state=self.random_state,
            tuning_metric=None if self.regression else "logloss",
        )
        self._model.fit(train, y_train, held_out, y_held_out)
        return self

    def _prepared(self, X: np.ndarray) -> np.ndarray:
        return np.nan_to_num((X - self._mean) / self._scale).astype(np.float32)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.ravel(self._model.predict(self._prepared(X)))

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self._model.predict_proba(self._prepared(X))

"""The data sets of ``kernels.py``, each with its published split or a seeded one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import train_test_split

from _common import arrays

REGRESSION = "regression"
CLASSIFICATION = "classification"


@dataclass(frozen=True)
class Rows:
    """Training rows as a method gets them; classes are 0, 1, ... in ``y``."""

    X: np.ndarray
    y: np.ndarray
    task: str
    n_classes: int = 0

    def __len__(self) -> int:
        return len(self.X)

    @property
    def regression(self) -> bool:
        return self.task == REGRESSION

    def sample(self, rows: int, seed: int) -> Rows:
        """A random sample without replacement; all rows if there are no more."""
        if len(self) <= rows:
            return self
        return self.take(np.random.default_rng(seed).permutation(len(self))[:rows])

    def take(self, rows: np.ndarray) -> Rows:
        return Rows(self.X[rows], self.y[rows], self.task, self.n_classes)

    def held_out(self, share: float, seed: int) -> tuple[Rows, Rows]:
        """Random parts for fitting and for choosing, stratified where every class can be."""
        strata = None if self.regression or np.bincount(self.y).min() < 2 else self.y
        fit, choose = train_test_split(
            np.arange(len(self)), test_size=share, random_state=seed, stratify=strata
        )
        return self.take(fit), self.take(choose)


@dataclass(frozen=True)
class KernelSet:
    """A data set: how it is called in tables, how it is split, and how to read split ``k``."""

    title: str
    split_note: str
    task: str
    splits: int
    read: Callable[[int], tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]

    def load(self, split: int) -> tuple[Rows, Rows]:
        """Training and test rows of one split."""
        if not 0 <= split < self.splits:
            raise ValueError(f"{self.title} has the splits 0 to {self.splits - 1}")
        X, y, X_test, y_test = self.read(split)
        kind = np.float64 if self.task == REGRESSION else np.int64
        classes = 0 if self.task == REGRESSION else int(y.max()) + 1
        train, test = (
            Rows(np.array(inputs, np.float64, order="C"), target.astype(kind), self.task, classes)
            for inputs, target in ((X, y), (X_test, y_test))
        )
        return train, test


def _masked(name: str, title: str) -> KernelSet:
    def read(split: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        found = arrays(name)
        test = found["test_mask"][:, split].astype(bool)
        X, y = found["X"], found["y"]
        return X[~test], y[~test], X[test], y[test]

    return KernelSet(title, "published 90/10 masks", REGRESSION, 10, read)


def _shuffled(
    name: str, title: str, share: float = 0.1, keys: tuple[str, str] = ("X", "y"), note: str = ""
) -> KernelSet:
    def read(split: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        found = arrays(name)
        X, y = found[keys[0]], found[keys[1]]
        y = y[:, 0] if y.ndim == 2 else y
        order = np.random.default_rng(split).permutation(len(X))
        tested = round(share * len(X))
        test, train = order[:tested], order[tested:]
        return X[train], y[train], X[test], y[test]

    sizes = f"own seeded {round(100 * (1 - share))}/{round(100 * share)} splits"
    return KernelSet(title, f"{sizes}{note}", REGRESSION, 10, read)


def _letter(_: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    found = arrays("letter_recognition")
    X, y = found["X"], found["y"]
    return X[:16_000], y[:16_000], X[16_000:], y[16_000:]


def _usps(_: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    found = arrays("usps")
    return found["X_train"], found["y_train"], found["X_test"], found["y_test"]


SETS: dict[str, KernelSet] = {
    "kin40k": _masked("kin40k", "kin40k"),
    "kin8nm": _shuffled("kin8nm", "kin8nm"),
    "power_plant": _shuffled("power_plant", "Power plant"),
    "pumadyn32nm": _masked("pumadyn32nm", "pumadyn32nm"),
    "cpu_act": _shuffled("cpu_act", "cpu_act"),
    "california_housing": _shuffled("california_housing", "California housing"),
    "house_16h": _shuffled("house_16H", "house_16H"),
    "sarcos": _shuffled(
        "sarcos",
        "SARCOS, 4,449 rows, torque 1",
        share=0.2,
        keys=("X_test", "Y_test"),
        note=" of the published test file only; not comparable with published figures",
    ),
    "letter": KernelSet(
        "Letter recognition", "published 16,000/4,000 split", CLASSIFICATION, 1, _letter
    ),
    "usps": KernelSet("USPS digits", "published 7,291/2,007 split", CLASSIFICATION, 1, _usps),
}

"""What outlying training labels cost under each loss of the distance in an output space.

Run ``python benchmarks/robust_outputs.py``.  In each split, 10 % of the training labels are
replaced by those of other random rows.  Models are fitted to the right labels and to the spoiled
ones, and both are evaluated on right test labels.  Squared error is also fitted without the spoiled
rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from _common import arrays, markdown_table, parts, study, timed
from hilboost import OutputKernelBoostingRegressor, label_weights
from hilboost.kernels import Gaussian
from hilboost.losses import Huber
from hilboost.outputs import KernelOutput

KNOWN, TESTED, SPOILED, SPLITS = 1000, 1000, 0.1, 4
SQUARED = "squared error"
LOSSES: dict[str, Any] = {
    SQUARED: "squared_error",
    "Huber(alpha=0.9)": Huber(alpha=0.9),
    "Huber(alpha=0.7)": Huber(alpha=0.7),
    "absolute error": "absolute_error",
}
WEIGHTED = {
    "squared error, label weights": "squared_error",
    "Huber(alpha=0.7), label weights": Huber(alpha=0.7),
}
"""Losses with the weights of ``label_weights``, from models of 100 stages."""
LEARNERS = {
    "extra_trees": (*LOSSES, *WEIGHTED),
    "kernel": (SQUARED, "Huber(alpha=0.7)", "absolute error"),
}
PACE: dict[str, dict[str, Any]] = {
    "extra_trees": {"n_estimators": 500, "learning_rate": 0.02},
    "kernel": {},
}
METRICS = {"points": "points, `embedding_loss`", "labels": "decoded labels, `preimage_loss`"}
RIGHT, WRONG, REMOVED = "right", "spoiled", "removed"
Labels = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Split:
    """Training rows, test rows, and the numbers of the spoiled rows with their new labels."""

    X: np.ndarray
    Y: np.ndarray
    X_test: np.ndarray
    Y_test: np.ndarray
    rows: np.ndarray
    others: np.ndarray

    @classmethod
    def draw(cls, X: np.ndarray, Y: np.ndarray, seed: int) -> Split:
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(X))
        n = min(KNOWN, int(0.7 * len(X)))
        known, tested = order[:n], order[n : n + TESTED]
        rows = rng.permutation(n)[: int(SPOILED * n)]
        others = rng.integers(n, size=len(rows))
        return cls(X[known], Y[known], X[tested], Y[tested], rows, others)

    def training(self, labels: str) -> Labels:
        """Right labels, spoiled ones, or only the rows whose labels are right."""
        if labels == REMOVED:
            return tuple(np.delete(part, self.rows, axis=0) for part in (self.X, self.Y))
        if labels == RIGHT:
            return self.X, self.Y
        spoiled = self.Y.copy()
        spoiled[self.rows] = self.Y[self.others]
        return self.X, spoiled


def _rankings(name: str) -> Labels:
    found = arrays("label_ranking")
    return found[f"{name}_X"].astype(float), found[f"{name}_ranks"].astype(int)


def _tags(name: str) -> Labels:
    X, Y = parts("mulan_multilabel", f"{name}_X", f"{name}_Y")
    return X.astype(float), Y.astype(int)


def _images() -> Labels:
    images = parts("usps", "X")[0].astype(float)
    return images[:, :128], images[:, 128:]


@dataclass(frozen=True)
class LabelSet:
    """A data set with its output space and decoding method."""

    title: str
    read: Callable[[], Labels]
    output: Any
    decode: str = "auto"


SETS = {
    "vehicle": LabelSet("Vehicle (rankings of 4)", partial(_rankings, "vehicle"), "ranking"),
    "stock": LabelSet("Stock (rankings of 5)", partial(_rankings, "stock"), "ranking"),
    "yeast": LabelSet(
        "Yeast (sets of 14 labels)", partial(_tags, "yeast"), "label_set", "threshold"
    ),
    "usps": LabelSet("USPS (lower halves)", _images, KernelOutput(Gaussian(7.0711), tolerance=0.1)),
}


def distances(model: Any, split: Split) -> dict[str, float]:
    """Median distance of test points from their right labels and from labels of other rows."""
    F = model.predict_embedding(split.X_test)
    codes, norms = model.output_.encode(split.Y_test), model.output_.norms(split.Y_test)
    found = {}
    for key, shift in ((RIGHT, 0), (WRONG, 1)):
        square = np.roll(norms, shift) - 2 * (np.roll(codes, shift, axis=0) * F).sum(axis=1)
        found[f"distance_{key}"] = float(np.median(np.sqrt(square + (F * F).sum(axis=1))))
    return found


def fits() -> Iterator[tuple[str, str, str]]:
    """Learner, loss and training labels of every fit."""
    for learner in LEARNERS:
        for loss in LEARNERS[learner]:
            for labels in (RIGHT, WRONG, REMOVED) if loss == SQUARED else (RIGHT, WRONG):
                yield learner, loss, labels


def measure(data: str, split: int, learner: str, loss: str, labels: str) -> dict[str, Any]:
    chosen = SETS[data]
    rows = Split.draw(*chosen.read(), split)
    model = OutputKernelBoostingRegressor(
        chosen.output,
        loss=(LOSSES | WEIGHTED)[loss],
        learner=learner,
        decode=chosen.decode,
        random_state=split,
        **PACE[learner],
    )
    X, Y = rows.training(labels)

    def fit() -> None:
        model.fit(X, Y, sample_weight=_weights(model, X, Y) if loss in WEIGHTED else None)

    with warnings.catch_warnings(action="ignore"):
        seconds, _ = timed(fit)
    return {
        "rows": len(rows.X),
        "points": float(model.embedding_loss(rows.X_test, rows.Y_test)),
        "labels_error": float(model.preimage_loss(rows.X_test, rows.Y_test)),
        "seconds": seconds,
    } | (distances(model, rows) if loss == SQUARED and labels == RIGHT else {})


def _weights(model: Any, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    shorter = clone(model).set_params(loss="squared_error", n_estimators=100, learning_rate=0.1)
    return label_weights(shorter, X, Y, random_state=0)


class Errors:
    """Mean test errors over the splits in which all fits of a set and a learner are done."""

    def __init__(self, records: list[dict[str, Any]], name: str, learner: str) -> None:
        chosen = [r for r in records if (r["data"], r["learner"]) == (name, learner)]
        self._of = {(r["loss"], r["labels"], r["split"]): r for r in chosen}
        pairs = [(loss, labels) for one, loss, labels in fits() if one == learner]
        self.splits = [
            seed for seed in range(SPLITS) if all((*pair, seed) in self._of for pair in pairs)
        ]

    def mean(self, loss: str, labels: str, key: str, without: int | None = None) -> float:
        """Mean over the splits, or over all but one."""
        seeds = [seed for seed in self.splits if seed != without]
        return float(np.mean([self._of[loss, labels, seed][key] for seed in seeds]))

    def cost(self, loss: str, labels: str, start: str, key: str) -> tuple[float, float]:
        """Rise of the error over that of ``start`` with right labels, as a share; and its spread.

        The share is of the rise under squared error.  The spread is the jackknife standard error.
        """

        def share(without: int | None = None) -> float:
            rise = self.mean(loss, labels, key, without) - self.mean(start, RIGHT, key, without)
            whole = self.mean(SQUARED, WRONG, key, without)
            return rise / (whole - self.mean(SQUARED, RIGHT, key, without))

        n = len(self.splits)
        if n < 2:
            return share(), np.nan
        others = np.array([share(seed) for seed in self.splits])
        return share(), float(np.sqrt((n - 1) / n * ((others - others.mean()) ** 2).sum()))


def _shown(cost: tuple[float, float]) -> str:
    share, spread = cost
    return f"{share:.2f}" if np.isnan(spread) else f"{share:.2f} ± {spread:.2f}"


def cost_table(records: list[dict[str, Any]], key: str) -> str:
    rows = []
    for name, chosen in SETS.items():
        for learner in LEARNERS:
            errors = Errors(records, name, learner)
            if not errors.splits:
                continue
            for loss in LEARNERS[learner]:
                right, spoiled = (errors.mean(loss, labels, key) for labels in (RIGHT, WRONG))
                own, over = (
                    _shown(errors.cost(loss, WRONG, start, key)) for start in (loss, SQUARED)
                )
                first = [chosen.title, learner, loss, f"{right:.4g}", f"{spoiled:.4g}"]
                rows.append([*first, *((own, over) if loss != SQUARED else ("1", "1"))])
            removed = errors.mean(SQUARED, REMOVED, key)
            share = _shown(errors.cost(SQUARED, REMOVED, SQUARED, key))
            rows.append(
                [chosen.title, learner, "spoiled rows removed", "-", f"{removed:.4g}", share, share]
            )
    header = ["data", "learner", "loss", "right", "spoiled", "own share", "full share"]
    return markdown_table(header, rows)


def distance_table(records: list[dict[str, Any]]) -> str:
    rows = []
    for name, chosen in SETS.items():
        for learner in LEARNERS:
            errors = Errors(records, name, learner)
            if errors.splits:
                near, far = (
                    errors.mean(SQUARED, RIGHT, f"distance_{key}") for key in (RIGHT, WRONG)
                )
                seconds = [
                    f"{errors.mean(loss, WRONG, 'seconds'):.1f}"
                    if loss in LEARNERS[learner]
                    else "-"
                    for loss in LOSSES
                ]
                n_rows = int(errors.mean(SQUARED, RIGHT, "rows"))
                first = [chosen.title, learner, n_rows, len(errors.splits)]
                rows.append([*first, f"{near:.3g}", f"{far:.3g}", f"{near / far:.2f}", *seconds])
    header = ["data", "learner", "rows", "splits", "right", "wrong", "ratio"]
    return markdown_table([*header, *(f"s, {loss}" for loss in LOSSES)], rows)


def page(records: list[dict[str, Any]], facts: str) -> str:
    sections = [
        f"# Outlying labels\n\n{facts}\n\n"
        f"{100 * SPOILED:g} % of the training labels are replaced by those of other random rows. "
        "“right” and “spoiled” are the errors on right test labels of models fitted to the right "
        "and to the spoiled labels, means over random splits. “own share” is (spoiled − right) of "
        "a loss, divided by (spoiled − right) of squared error with the same learner. “full "
        "share” is (spoiled of the loss − right of squared error), divided by the same, so that "
        "it contains what the loss costs without outliers. ± is the jackknife standard error over "
        "splits. The last row of each group is squared error without the spoiled rows: the share "
        "that is due to fewer rows. 500 trees, rate 0.02; all other parameters have their defaults."
    ]
    for key, title in (("points", METRICS["points"]), ("labels_error", METRICS["labels"])):
        sections.append(f"## Error of {title}\n\n{cost_table(records, key)}")
    sections.append(
        "## Distances and times\n\nMedian distance from predicted points to right test labels and "
        "to labels of other test rows, under squared error with right labels, and seconds of a fit "
        f"to spoiled labels.\n\n{distance_table(records)}"
    )
    return "\n\n".join(sections)


def main() -> None:
    cases = [
        {"data": data, "split": split, "learner": learner, "loss": loss, "labels": labels}
        for split in range(SPLITS)
        for data in SETS
        for learner, loss, labels in fits()
    ]
    study("robust_outputs", cases, measure, page, about=__doc__)


if __name__ == "__main__":
    main()

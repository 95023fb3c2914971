"""Facts about rankings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.metric import Metric
from hilboost.core.target import Target
from hilboost.metrics import NDCG, MeanAveragePrecision, MeanReciprocalRank
from hilboost.report.figures import score, with_intervals
from hilboost.report.table import bins_of, histogram_of_shares, means_by_bin, shortened
from hilboost.validation.groups import undecided

_POSITIONS = 10
_WORST = 6


def _measures(model: Any) -> list[tuple[Metric, str, str]]:
    """Metrics, their names and descriptions; the first is that of ``score``."""
    k = model.k
    return [
        (NDCG(k, model.gain), f"NDCG@{k}", f"discounted gain of the first {k} rows; 1 is best"),
        (NDCG(1, model.gain), "NDCG@1", "gain of the first row, as a share of the largest"),
        (MeanAveragePrecision(), "MAP", "mean average precision of the rows with a positive label"),
        (MeanReciprocalRank(), "MRR", "mean of one over the position of the first relevant row"),
    ]


def chosen_scores(
    model: Any, target: Target, raw: Floats, metrics: Sequence[Metric]
) -> list[dict[str, Any]]:
    """Compute metrics of a ranking; NDCG has the gain of the model."""
    found = []
    for metric in metrics:
        own = NDCG(metric.k, model.gain) if isinstance(metric, NDCG) else metric
        value, chance = (own.parts(target, one).values.mean() for one in (raw, np.zeros_like(raw)))
        found.append(score(own.name, value, chance, "higher", "mean over the groups"))
    return found


def ranking_facts(model: Any, target: Target, raw: Floats, labels: NDArray[Any]) -> dict[str, Any]:
    """Collect metrics of all groups, and by their length, and the labels at the first positions."""
    measures = _measures(model)
    one = target.with_y(target.y)  # without cached lengths
    of_groups = [metric.parts(one, raw).values for metric, *_ in measures]
    by_chance = [metric.parts(one, np.zeros_like(raw)).values for metric, *_ in measures]

    def means(groups: Any) -> list[dict[str, Any]]:
        return [
            score(name, values[groups].mean(), chance[groups].mean(), "higher", says)
            for (_, name, says), values, chance in zip(measures, of_groups, by_chance, strict=True)
        ]

    sizes, ndcg = np.diff(target.starts), of_groups[0]
    curves, bins = {"ndcg": ndcg, "chance": by_chance[0]}, bins_of(sizes.astype(np.float64))
    return {
        "scores": with_intervals(means(slice(None)), len(sizes), means),
        "measure": measures[0][1],
        "n_groups": len(sizes),
        "longest": int(sizes.max()),
        "undecided": int(undecided(target).sum()),
        "by_length": means_by_bin(bins, curves, np.ones(len(sizes))),
        "histogram": histogram_of_shares(ndcg),
        "by_position": _by_position(target, raw[:, 0]),
        "worst": _worst(target, raw[:, 0], ndcg, labels),
    }


def _by_position(target: Target, scores: Floats) -> dict[str, Any]:
    """Mean label at the first positions: of the model, of the best order, and of a random one."""
    y, starts = target.y[:, 0], target.starts
    sizes = np.diff(starts)
    number = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(y)) - starts[number]
    means = np.add.reduceat(y, starts[:-1]) / sizes
    by_score, best = _mean_of_ties(y, scores, number), y[np.lexsort((-y, number))]
    positions = range(min(_POSITIONS, int(sizes.max())))
    return {
        "position": [p + 1 for p in positions],
        "model": [by_score[place == p].mean() for p in positions],
        "best": [best[place == p].mean() for p in positions],
        "chance": [means[sizes > p].mean() for p in positions],
    }


def _mean_of_ties(y: Floats, scores: Floats, number: NDArray[Any]) -> Floats:
    """Labels by decreasing score within each group; rows of equal scores have their mean label."""
    order = np.lexsort((-scores, number))
    begins = (np.diff(number[order]) != 0) | (np.diff(scores[order]) != 0)
    tie = np.append(0, np.cumsum(begins))
    return (np.bincount(tie, y[order]) / np.bincount(tie))[tie]


def _worst(
    target: Target, scores: Floats, ndcg: Floats, labels: NDArray[Any]
) -> list[dict[str, Any]]:
    """Describe the groups with the lowest values, of those whose labels differ."""
    decided = np.flatnonzero(~undecided(target))
    found = []
    for group in decided[np.argsort(ndcg[decided], kind="stable")][:_WORST]:
        rows = slice(*target.starts[group : group + 2])
        y = target.y[rows, 0]
        by_score = scores[rows]
        ranked = _mean_of_ties(y, by_score, np.zeros(len(y), np.int64))
        highest = by_score[y == y.max()].max()
        found.append(
            {
                "group": shortened(labels[group]),
                "rows": len(y),
                "value": ndcg[group],
                "first": ranked[0],
                "largest": y.max(),
                "position": int((by_score > highest).sum()) + 1,
            }
        )
    return found

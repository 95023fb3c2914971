"""Metrics for ``eval_metric``, one for each class."""

from hilboost.core.metric import Metric, MetricParts
from hilboost.metrics.classes import (
    AUC,
    Accuracy,
    AveragePrecision,
    BalancedAccuracy,
    Brier,
    ClassLogLoss,
)
from hilboost.metrics.distributions import CRPS, IntervalScore, LogScore
from hilboost.metrics.function import FunctionMetric
from hilboost.metrics.numbers import (
    R2,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    RootMeanSquaredError,
)
from hilboost.metrics.rankings import NDCG, MeanAveragePrecision, MeanReciprocalRank
from hilboost.metrics.registry import metrics_by_name
from hilboost.metrics.survival import Concordance

__all__ = [
    "AUC",
    "CRPS",
    "NDCG",
    "R2",
    "Accuracy",
    "AveragePrecision",
    "BalancedAccuracy",
    "Brier",
    "ClassLogLoss",
    "Concordance",
    "FunctionMetric",
    "IntervalScore",
    "LogScore",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanAveragePrecision",
    "MeanReciprocalRank",
    "MeanSquaredError",
    "Metric",
    "MetricParts",
    "RootMeanSquaredError",
    "metrics_by_name",
]

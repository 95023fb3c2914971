"""Built-in metrics by name.  Each class declares its own names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache

from hilboost.core.discovery import by_name, classes_in
from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType, shown, unknown_name
from hilboost.core.metric import Metric
from hilboost.core.plain_values import as_list, is_class


@cache
def metrics_by_name() -> Mapping[str, type[Metric]]:
    """Metrics by all of their names."""
    metrics = classes_in("hilboost.metrics", Metric)  # type: ignore[type-abstract]
    named = ((name, metric) for metric in metrics for name in metric.names)
    return by_name(named, "metrics have the name")


def metrics_of(given: object, kind: str) -> tuple[Metric, ...]:
    """Create the metrics that the parameter ``eval_metric`` specifies."""
    if given is None:
        return ()
    found = tuple(_metric(one, kind) for one in as_list(given))
    names = [metric.name for metric in found]
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    if twice:
        raise InvalidParameter(f"eval_metric contains {twice[0]!r} twice; remove one.")
    return found


def refuse_bounds_of(metrics: Collection[Metric]) -> None:
    """Reject metrics that do not score targets of which only bounds are known."""
    for metric in metrics:
        if not metric.scores_bounds:
            raise InvalidData(
                f"eval_metric={metric.name!r} requires one number for each row, but y holds bounds "
                "of targets; set eval_metric='log_score', or None."
            )


_OF_FUNCTIONS = (
    "Pass a function as hilboost.metrics.FunctionMetric(function, higher_is_better=...)."
)


def _metric(given: object, kind: str) -> Metric:
    if isinstance(given, str):
        supported = _of_kind(kind)
        base, _, suffix = given.partition("@")
        if given not in supported and suffix.isdecimal() and f"{base}@k" in supported:
            return supported[f"{base}@k"](int(suffix))  # type: ignore[call-arg]
        if given not in supported:
            raise _unknown(given, kind, supported)
        return supported[given]()
    if is_class(given, Metric):
        given = given()
    if not isinstance(given, Metric):
        raise InvalidType(
            f"eval_metric must be a name, a Metric, or a list of these; got {shown(given)}. "
            f"{_OF_FUNCTIONS}"
        )
    if given.kind not in ("all", kind):
        raise _of_another_kind(given.name, given.kind, kind)
    return given


def _unknown(given: str, kind: str, supported: Collection[str]) -> InvalidParameter:
    """Create the error for a name that is not a metric of these targets."""
    same = same_metric(given, supported)
    other = None if same else same_metric(given, metrics_by_name())
    if other is not None:
        return _of_another_kind(given, metrics_by_name()[other.partition("@")[0]].kind, kind)
    if same is None and any(_plain(given) in row.split() for row in _LOSSES):
        return InvalidParameter(
            f"eval_metric={given!r} is a loss; set it as the loss, which is recorded and decides "
            "when to stop, and set eval_metric=None."
        )
    error = unknown_name("eval_metric", given, supported, same)
    return error if "Did you mean" in str(error) else InvalidParameter(f"{error} {_OF_FUNCTIONS}")


def same_metric(name: str, known: Collection[str]) -> str | None:
    """Return the name among ``known`` of a metric that another library calls ``name``."""
    base, at, k = _plain(name).partition("@")
    for one in (base, *_SYNONYMS.get(base, ())):
        if at and (f"{one}@k" in known or f"{one}@{k}" in known):
            return f"{one}@{k}"
        if one in known:
            return one
    return None


def _plain(name: str) -> str:
    """Return a name of any library in lower case, without signs."""
    return name.lower().rstrip("-").removeprefix("neg_").replace("-", "_").replace(":top=", "@")


def _of_kind(kind: str) -> dict[str, type[Metric]]:
    return {name: metric for name, metric in metrics_by_name().items() if metric.kind == kind}


_METRICS = (
    "accuracy acc accuracy_score subset_accuracy binary_error error merror multi_error",
    "auc roc_auc auc_mu multiclass_auc roc_auc_ovo roc_auc_ovr roc_auc_score",
    "average_precision aucpr average_precision_score pr_auc prauc",
    "balanced_accuracy balanced_accuracy_score balancedaccuracy",
    "brier brier_loss brier_score brier_score_loss brierscore",
    "concordance c_index cindex concordance_index concordance_index_censored",
    "concordance_ipcw concordance_index_ipcw",
    "ibs neg_integrated_brier integrated_brier integrated_brier_score",
    "log_loss binary_logloss cross_entropy crossentropy logloss mlogloss multi_logloss multiclass",
    "mae mean_absolute_error absolute_error l1",
    "map mean_average_precision",
    "mape mean_absolute_percentage_error",
    "median_error median_absolute_error medianabsoluteerror",
    "mrr mean_reciprocal_rank",
    "mse mean_squared_error squared_error l2 rmse",  # where there is no square
    "ndcg lambdarank ndcg_score",
    "r2 r2_score",
    "rmse root_mean_squared_error l2_root",
)
_LOSSES = (
    "mean_gamma_deviance gamma gamma_deviance gamma_nloglik",
    "mean_poisson_deviance poisson poisson_nloglik",
    "mean_tweedie_deviance tweedie tweedie_nloglik",
    "pinball_loss mean_pinball_loss pinball quantile",
    "aft_nloglik aft",
    "cox_nloglik cox",
    "hinge hinge_loss",
    "huber huber_loss",
)
_ROWS = [row.split() for row in (*_METRICS, *_LOSSES)]
_SYNONYMS = {word: names for names in _ROWS for word in names}
"""Names of each metric here and in other libraries, in lower case, by each of these names."""

_TARGETS = {"groups": "rankings", "survival": "survival times"}


def _of_another_kind(name: str, own: str, kind: str) -> InvalidParameter:
    """Create the error for a metric of other targets."""
    own, kind_ = (_TARGETS.get(one, one) for one in (own, kind))
    names = ", ".join(sorted(_of_kind(kind)))
    return InvalidParameter(
        f"eval_metric={name!r} is a metric of {own}; for {kind_}, use one of {names}."
    )

"""Built-in metrics by name.  Each class declares its own names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from hilboost.core.discovery import by_name, classes_in
from hilboost.core.errors import InvalidParameter, InvalidType, shown, unknown_name
from hilboost.core.metric import Metric
from hilboost.core.words import by_word


@cache
def metrics_by_name() -> Mapping[str, type[Metric]]:
    """Metrics by all of their names."""
    metrics = classes_in("hilboost.metrics", Metric)  # type: ignore[type-abstract]
    named = ((name, metric) for metric in metrics for name in metric.names)
    return by_name(named, "metrics have the name")


def metrics_of(given: Any, kind: str) -> tuple[Metric, ...]:
    """Create the metrics that the parameter ``eval_metric`` specifies.

    ``kind``: the kind of the targets.
    """
    if given is None:
        return ()
    listed = given if isinstance(given, list | tuple) else [given]
    found = tuple(_metric(one, kind) for one in listed)
    names = [metric.name for metric in found]
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    if twice:
        raise InvalidParameter(f"eval_metric contains {twice[0]!r} twice; remove one.")
    return found


def _metric(given: Any, kind: str) -> Metric:
    if isinstance(given, str):
        supported = _of_kind(kind)
        base, _, suffix = given.partition("@")
        if given not in supported and suffix.isdecimal() and f"{base}@k" in supported:
            return supported[f"{base}@k"](int(suffix))  # type: ignore[call-arg]
        if given not in supported:
            other = metrics_by_name().get(given)
            if other is not None:
                raise _of_another_kind(given, other.kind, kind)
            raise unknown_name("eval_metric", given, supported, same_metric(given, supported))
        return supported[given]()
    if isinstance(given, type) and issubclass(given, Metric):
        given = given()
    if not isinstance(given, Metric):
        raise InvalidType(
            f"eval_metric must be a name, a Metric, or a list of these; got {shown(given)}. Pass a "
            "function as hilboost.metrics.FunctionMetric(function, higher_is_better=...)."
        )
    if given.kind not in ("all", kind):
        raise _of_another_kind(given.name, given.kind, kind)
    return given


def same_metric(name: str, known: Collection[str]) -> str | None:
    """Return the name among ``known`` of a metric that another library calls ``name``."""
    plain = name.lower().replace("-", "_")
    return next((one for one in (plain, _ELSEWHERE.get(plain)) if one in known), None)


def _of_kind(kind: str) -> dict[str, type[Metric]]:
    return {name: metric for name, metric in metrics_by_name().items() if metric.kind == kind}


_ELSEWHERE = by_word(
    {
        "accuracy": "binary_error error merror multi_error",
        "average_precision": "aucpr prauc",
        "concordance": "c_index",
        "log_loss": "binary_logloss crossentropy logloss mlogloss multi_logloss multiclass",
        "mae": "l1",
        "map": "mean_average_precision",
        "mse": "l2",
    }
)
"""Names of metrics in other libraries, in lower case."""

_TARGETS = {"groups": "rankings", "survival": "survival times"}


def _of_another_kind(name: str, own: str, kind: str) -> InvalidParameter:
    """Create the error for a metric of other targets."""
    own, kind_ = (_TARGETS.get(one, one) for one in (own, kind))
    names = ", ".join(sorted(_of_kind(kind)))
    return InvalidParameter(
        f"eval_metric={name!r} is a metric of {own}; for {kind_}, use one of {names}."
    )

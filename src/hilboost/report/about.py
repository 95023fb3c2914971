"""Facts about a model that need no data: parameters, stages, and kernel."""

from __future__ import annotations

import platform
from dataclasses import asdict
from inspect import signature
from typing import Any

import numpy as np
import sklearn

from hilboost.core.callback import History
from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts, counted
from hilboost.core.loss import Loss
from hilboost.core.plain_values import (
    as_list,
    as_python,
    is_array_or_list,
    is_auto,
    is_class,
    is_plain,
)
from hilboost.core.version import __version__
from hilboost.kernels import Kernel
from hilboost.kernels.description import to_description
from hilboost.learners.kernel_machine.summary import StageKernels
from hilboost.model.fit_facts import described
from hilboost.model.fitted import FittedModel
from hilboost.model.summary import summary
from hilboost.report.table import number_text, shortened, thinned
from hilboost.training.recipes.output_kernels import pace

_CURVE_POINTS = 400
_SLOWEST = 3
_STAGES = {
    "full": "full: steps toward kernel ridge regression on all rows",
    "sparse": "sparse: kernel machines with few basis vectors",
    "block": "block: kernel ridge regression on blocks of rows",
}


def model_facts(model: Any) -> dict[str, Any]:
    """Describe a fitted model."""
    record: FittedModel = model.fitted_
    kind = record.codec.kind
    return {
        "class": type(model).__name__,
        "loss": _name(model.loss or model.loss_.regressor_name or model.loss_),
        "learner": type(record.learner).__name__,
        "learners": learner_facts(record),
        "parts": part_facts(record),
        "n_stages": record.n_stages or None,
        "n_leaves": _n_leaves(record),
        "n_columns": record.schema.n_columns,
        "column_names": list(record.schema.names or ()) or None,
        "n_outputs": len(record.model.initial_raw) if model.is_additive else None,
        "classes": [str(label) for label in record.classes] if kind == "classes" else None,
        "output": type(record.output.embedding).__name__ if kind == "structured" else None,
        "parameters": parameter_facts(model),
        "history": history_facts(record),
        "kernel": kernel_facts(model),
        "versions": {
            "hilboost": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
        },
    }


def learner_facts(record: FittedModel) -> list[dict[str, Any]] | None:
    """Number and share of the stages that each of several learners fitted."""
    if not record.learner.capabilities.learner_names:
        return None
    counts = record.learners.counts
    total = max(1, sum(counts.values()))
    return [{"name": name, "stages": n, "share": n / total} for name, n in counts.items()]


def part_facts(record: FittedModel) -> list[dict[str, Any]] | None:
    """Weight and held-out gain of each part of a mixture, and of a part that was left out."""
    if record.parts is None:
        return None
    return [{"name": name, "text": p.text} | asdict(p) for name, p in record.parts.items()]


def _n_leaves(record: FittedModel) -> int | None:
    if not record.learner.capabilities.resumable:
        return None
    models = [term.model.on_leaves() for stage in record.model.stages for term in stage.terms]
    return sum(len(tree.values) for tree in models if tree is not None)


def parameter_facts(model: Any) -> list[dict[str, Any]]:
    """Describe each parameter: its value, its default, and the value that "auto" selected."""
    defaults = signature(type(model).__init__).parameters
    facts = []
    for name, value in model.get_params(deep=False).items():
        default = defaults[name].default
        auto = is_auto(value)
        facts.append(
            {
                "name": name,
                "value": _plain(value),
                "default": _plain(default),
                "chosen": _plain(value) != _plain(default),
                "became": _plain(_became(model, name)) if auto else None,
            }
        )
    return facts


def _became(model: Any, name: str) -> Any:
    """Return the fitted value of a parameter set to "auto"; ``None`` if unknown."""
    if name == "stages":
        return model.learner_.name
    fitted: FittedModel = model.fitted_
    machine = fitted.kernel_machine
    if name == "kernel" and machine is not None and machine.kernel is not None:
        return kernel_text(machine.kernel)
    if name == "learning_rate" and fitted.codec.kind == "structured":
        return pace(model.get_params(deep=False), fitted.learner)[1]
    if model.is_tabular and fitted.resolved is None:
        return None  # loaded from an old model file, which does not contain resolved values
    holders = ((fitted.resolved, name), (model, f"{name}_"), (fitted.learner, name))
    for holder, attribute in holders:
        value = as_python(getattr(holder, attribute, None))
        if value is not None and is_plain(value) and not is_auto(value):
            return value
    return None


def _plain(value: Any) -> Any:
    """Convert a parameter to a JSON-compatible value; objects and lists of them become text."""
    is_list = is_array_or_list(value)
    values = as_list(np.asarray(value, dtype=object).tolist()) if is_list else [value]
    found = [kernel_text(one) if isinstance(one, Kernel) else as_python(one) for one in values]
    if not all(map(is_plain, found)):
        return shortened(value, 120)
    return found if is_list else found[0]


def _name(value: object) -> str:
    if is_plain(value):
        return str(value)
    return str(value.__name__ if is_class(value, Loss) else type(value).__name__)


def history_facts(fitted: FittedModel) -> dict[str, Any] | None:
    """Collect mean losses by stage, thinned for long fits."""
    history = fitted.history
    if history is None or len(history.train) < 2:
        return None
    n = len(history.train)
    shown = thinned(np.arange(n), _CURVE_POINTS)
    validation = history.validation
    return {
        "stages": shown,
        "train": history.train[shown].tolist(),
        "validation": None if validation is None else validation[shown].tolist(),
        "kept": fitted.n_stages,
        "fitted": n - 1,
        "summary": summary(fitted),
        "remark": _remark(fitted, history),
        **_times(history.seconds),
    }


def _times(seconds: Floats | None) -> dict[str, Any]:
    """Collect the total time and the slowest stages, if all times are known."""
    if seconds is None or not np.isfinite(seconds).all():
        return {"seconds": None, "slowest": []}
    slowest = np.argsort(-seconds, kind="stable")[:_SLOWEST]
    return {
        "seconds": float(seconds.sum()),
        "slowest": [{"stage": int(k) + 1, "seconds": float(seconds[k])} for k in slowest],
    }


def _remark(fitted: FittedModel, history: History) -> str:
    if described(fitted.parts) is not None:
        return "Held-out rows decided about the weights."
    kept, n_fitted = fitted.n_stages, len(history.train) - 1
    stages = counted(kept, "stage")
    whole = fitted.cut_from
    if whole is not None:
        return f"The model has {stages}, the first ones of a model of {whole}."
    if history.validation is None and fitted.learner.name == "full":
        return f"{stages} on all rows toward kernel ridge regression, without validation data."
    if history.validation is None:
        return (
            f"{stages}, without validation data: the training loss alone does not show whether "
            "fewer or more stages would be better."
        )
    if kept < n_fitted:
        return (
            f"The validation loss was lowest after stage {kept} of {n_fitted}; the model uses "
            f"{stages}."
        )
    return (
        f"The validation loss was lowest after the last stage ({kept}); more stages may improve "
        "the model (increase n_estimators)."
    )


def kernel_facts(model: Any) -> dict[str, Any] | None:
    """Describe the kernel, length scales, λ, and basis vectors of a kernel model."""
    record: FittedModel = model.fitted_
    machine = record.kernel_machine
    if machine is None or machine.kernel is None:
        return None
    d = record.schema.n_columns
    names = record.schema.names or [f"column {j}" for j in range(d)]
    scales = _scales(_described(machine.kernel), list(range(d)))
    noise = machine.regularization
    return {
        "text": kernel_text(machine.kernel),
        "listed": _listed_facts(machine.stage_kernels),
        "regularization": None if noise is None else float(noise),
        "amplitude": float(machine.amplitude),
        "n_basis": record.model.n_basis if model.is_additive else None,
        "stages": _STAGES.get(record.learner.name or ""),
        "scales": [
            {"name": names[j], "scale": float(scale)}
            for j, scale in sorted(scales.items(), key=lambda pair: pair[1])
        ],
    }


def _listed_facts(listed: StageKernels | None) -> list[dict[str, Any]] | None:
    """Describe the kernels of a list: their weights, and their numbers of stages."""
    if listed is None:
        return None
    counts = np.bincount(listed.chosen, minlength=len(listed.kernels))
    return [
        {"text": kernel_text(kernel), "weight": float(weight), "stages": int(count)}
        for kernel, weight, count in zip(listed.kernels, listed.weights, counts, strict=True)
    ]


def _described(kernel: Kernel) -> dict[str, Any]:
    try:
        return to_description(kernel)
    except IncompatibleParts:
        return {"type": type(kernel).__name__}


def _scales(description: dict[str, Any], columns: list[int]) -> dict[int, float]:
    """Return the length scale of each column that has its own; the shortest if several."""
    kind = description["type"]
    if kind == "mapped":
        return {}  # its length scales belong to linear combinations of columns
    if kind == "on_columns":
        return _scales(description["kernel"], [columns[k] for k in description["columns"]])
    if "length_scale" in description:
        scales = description["length_scale"]
        return dict(zip(columns, scales, strict=True)) if len(scales) == len(columns) > 1 else {}
    parts = description.get("parts") or [description[k] for k in ("kernel",) if k in description]
    found: dict[int, float] = {}
    for part in parts:
        for column, scale in _scales(part, columns).items():
            found[column] = min(scale, found.get(column, np.inf))
    return found


_NAMES = {
    "gaussian": "Gaussian",
    "laplace": "Laplace",
    "rational_quadratic": "rational quadratic",
    "delta": "categories",
}


def kernel_text(kernel: Kernel) -> str:
    """Describe a kernel in words and numbers."""
    return _text(_described(kernel))


def _text(one: dict[str, Any]) -> str:
    kind = one["type"]
    if kind == "sum":
        return " + ".join(_text(part) for part in one["parts"])
    if kind == "product":
        return " × ".join(_bracketed(part) for part in one["parts"])
    if kind == "scaled":
        return f"{number_text(one['factor'])} · {_bracketed(one['kernel'])}"
    if kind == "on_columns":
        columns = ", ".join(str(c) for c in one["columns"])
        return f"{_bracketed(one['kernel'])} on columns {shortened(columns, 60)}"
    if kind == "mapped":
        return f"{_text(one['kernel'])} on {len(one['matrix'][0])} linear combinations of columns"
    if kind == "constant":
        return f"constant {number_text(one['value'])}"
    name = _NAMES.get(kind, kind)
    if kind == "matern":
        name = f"Matérn {number_text(2 * one['nu'])}/2"
    scales = one.get("length_scale", ())
    if len(scales) > 1:
        return f"{name} with {len(scales)} length scales"
    return f"{name} with length scale {number_text(scales[0])}" if scales else name


def _bracketed(one: dict[str, Any]) -> str:
    return f"({_text(one)})" if one["type"] == "sum" else _text(one)

"""Conversion of the record of a fit to and from the contents of a model file."""

from __future__ import annotations

import math
from dataclasses import MISSING, asdict, fields
from functools import partial
from itertools import pairwise
from typing import Any, get_type_hints

import numpy as np

from hilboost.core.callback import History
from hilboost.core.learner import Learner
from hilboost.model import AdditiveModel
from hilboost.model.codecs import ClassCodec, NumberCodec, OutputCodec, TargetCodec
from hilboost.model.fit_facts import ModelPart, ResolvedParameters
from hilboost.model.fitted import FittedModel
from hilboost.model.row_marks import RowMarks
from hilboost.persistence import calibrations, categories, kernel_machines, output_spaces, survival
from hilboost.persistence.require import (
    Arrays,
    positive,
    require,
    require_array,
    require_kind,
    require_list,
)
from hilboost.persistence.stored import Header, StoredModel
from hilboost.persistence.values import ValueReader, ValueWriter, label_dtype, read_labels
from hilboost.tables.schema import Level, Schema, category_choice


def to_file(fitted: FittedModel, writer: ValueWriter) -> tuple[Header, Arrays]:
    """Convert the record to fields of the header, and arrays."""
    header: Header = {"n_features_in": fitted.schema.n_columns, "seed": fitted.seed}
    arrays: Arrays = {}
    if fitted.history is not None:
        train, validation = fitted.history.train, fitted.history.validation
        header["train"] = train.tolist()
        header["validation"] = None if validation is None else validation.tolist()
        if fitted.history.metrics:
            header["metrics"] = {k: v.tolist() for k, v in fitted.history.metrics.items()}
    if fitted.schema.categories:
        header["categories"] = [[k, list(levels)] for k, levels in fitted.schema.levels]
    if fitted.encoding is not None:
        header["encoding"], arrays = categories.to_file(fitted.encoding)
    if fitted.resolved is not None:
        header["chosen"] = resolved_to_file(fitted.resolved)
    if fitted.parts is not None:
        header["parts"] = _parts_to_file(fitted.parts)
    if fitted.cut_short:
        header["cut_short"] = list(fitted.cut_short)
    if fitted.beside_offsets:
        header["offset"] = True
        header["offset_range"] = fitted.offset_range
    own, more = _codec_to_file(fitted, writer)
    header, arrays = header | own, arrays | more
    if fitted.loss.sharpness is not None:
        header["sharpness"] = float(fitted.loss.sharpness)
    if fitted.kernel_machine is not None:
        keeps_noise = fitted.n_stages > 0 and fitted.loss.gaussian
        header["machine"], more = kernel_machines.to_file(
            fitted.kernel_machine, fitted.learner.name, writer, keeps_noise
        )
        arrays |= more
    elif "output" not in header:
        header |= stages_to_file(fitted.learner)
    if fitted.calibration is not None:
        header["calibration"], more = calibrations.to_file(fitted.calibration)
        arrays |= more
    if fitted.marks is not None:
        own, more = _marks_to_file(fitted.marks)
        header, arrays = header | own, arrays | more
    return header, arrays


def from_file(
    additive: AdditiveModel, header: Header, arrays: Arrays, reader: ValueReader, choice: object
) -> StoredModel:
    """Read what :func:`to_file` wrote; ``choice`` is the parameter ``categorical_features``."""
    schema = _read_schema(header, choice)
    codec, stages = _read_codec(header, arrays, len(additive.initial_raw), reader)
    require(codec.n_classes != 1 or not additive.stages, "classes")
    encoding = summary = None
    if "encoding" in header:
        encoding = categories.from_file(header["encoding"], arrays, schema)
    if "machine" in header:
        summary, stages = kernel_machines.from_file(
            header["machine"], arrays, additive, schema.n_columns, reader
        )
    require(type(header.get("offset", False)) is bool, "offset")
    history = read_history(header) if "train" in header else None
    require(history is None or len(history.train) > len(additive.stages), "train")
    require(type(header["seed"]) is int and header["seed"] >= 0, "seed")
    cut_short = require_list(header.get("cut_short", []), (str,), "cut_short")
    require(set(cut_short) <= {"stages", "kernel"}, "cut_short")
    resolved = resolved_from_file(header["chosen"]) if "chosen" in header else None
    curves = None
    if codec.kind == "survival":
        curves = survival.curves_from_file(header, arrays, codec.of_survival())
    parts = None
    if "parts" in header:
        parts = _parts_from_file(header["parts"], len(additive.initial_raw))
    sharpness = positive(header["sharpness"], "sharpness") if "sharpness" in header else None
    fitted = partial(
        FittedModel,
        model=additive,
        schema=schema,
        codec=codec,
        seed=header["seed"],
        history=history,
        encoding=encoding,
        resolved=resolved,
        kernel_machine=summary,
        calibration=calibrations.from_file(header, arrays, additive, codec),
        parts=parts,
        survival=curves,
        beside_offsets=header.get("offset", False),
        offset_range=_read_range(header.get("offset_range")),
        marks=_marks_from_file(header, arrays),
        cut_short=tuple(cut_short),
    )
    return StoredModel(schema, codec, resolved, parts, stages, sharpness, fitted)


def _read_range(written: object) -> tuple[float, float] | None:
    """Return the smallest and the largest offset, which earlier versions did not note."""
    if written is None:
        return None
    ends = require_list(written, (float,), "offset_range")
    require(len(ends) == 2 and all(map(math.isfinite, ends)), "offset_range")
    return ends[0], ends[1]


def feature_names(header: Header) -> np.ndarray | None:
    """Column names, if the table of the fit had any."""
    if "feature_names_in" not in header:
        return None
    names = require_list(header["feature_names_in"], (str,), "feature_names_in")
    require(len(names) == int(header["n_features_in"]), "feature_names_in")
    return np.array(names, dtype=object)


def _codec_to_file(fitted: FittedModel, writer: ValueWriter) -> tuple[Header, Arrays]:
    if fitted.codec.kind == "classes":
        dtype = label_dtype(fitted.classes).str
        return {"classes": fitted.classes.tolist(), "classes_dtype": dtype}, {}
    if fitted.codec.kind == "survival":
        assert fitted.survival is not None
        return survival.to_file(fitted.codec.of_survival(), fitted.survival)
    if fitted.codec.kind == "numbers":
        numbers = fitted.numbers
        names = {} if numbers.names is None else {"target_names": list(numbers.names)}
        return {"n_targets": numbers.n_targets, "flat": numbers.flat, **names}, {}
    output = fitted.output
    span = output.span_rows, output.span_codes, output.n_train
    fields, arrays = output_spaces.to_arrays(output.embedding, span, writer)
    fields |= stages_to_file(fitted.learner)
    if output.outside:
        fields["outside"] = True
    return {"output": fields}, arrays


def _read_codec(
    header: Header, arrays: Arrays, n_outputs: int, reader: ValueReader
) -> tuple[TargetCodec, str | None]:
    """Read the codec, and the name of the kernel stages, if any."""
    if "output" in header:
        embedding, span = output_spaces.from_arrays(header["output"], arrays, n_outputs, reader)
        outside = header["output"].get("outside", False)
        require(type(outside) is bool, "outside")
        rows, codes, n_train = span
        codec = OutputCodec(embedding, rows, codes, n_train, outside)
        return codec, stages_from_file(header["output"])
    if "survival" in header:
        return survival.codec_from_file(header["survival"]), stages_from_file(header)
    if "classes" in header:
        classes = read_labels(header["classes"], header["classes_dtype"], "classes")
        require(len(classes) >= 1, "classes")
        return ClassCodec(classes), stages_from_file(header)
    n_targets, names = int(header["n_targets"]), header.get("target_names")
    if names is not None:  # files of earlier versions have none
        names = tuple(require_list(names, (str,), "target_names"))
        require(len(names) == n_targets, "target_names")
    return NumberCodec(n_targets, bool(header["flat"]), names), stages_from_file(header)


def stages_to_file(learner: Learner) -> Header:
    """Convert the name of kernel stages, which the parameters may leave open, to a field."""
    return {"stages": learner.name} if learner.name in kernel_machines.STAGES else {}


def stages_from_file(fields: Header) -> str | None:
    """Read what :func:`stages_to_file` wrote."""
    if not isinstance(fields, dict) or "stages" not in fields:
        return None
    require(fields["stages"] in kernel_machines.STAGES, "stages")
    return str(fields["stages"])


def _read_schema(header: Header, choice: object) -> Schema:
    """Read the levels of category columns; files of format 1 have none."""
    d, entries = int(header["n_features_in"]), header.get("categories", [])
    names = header.get("feature_names_in")
    chosen = category_choice(choice, d, names)
    require_kind(entries, list, "categories")
    found: list[tuple[int, tuple[Level, ...]]] = []
    for k, levels in entries:
        require(type(k) is int and (found[-1][0] if found else -1) < k < d, "categories")
        is_text = str in map(type, require_kind(levels, list, "categories"))
        require_list(levels, (str,) if is_text else (int, float, bool), "categories")
        require(is_text or all(map(math.isfinite, levels)), "categories")
        require(all(a < b for a, b in pairwise(levels)), "categories")
        found.append((k, tuple(levels)))
    schema = Schema(d, None if names is None else tuple(names), tuple(found))
    require(not found or chosen is None or set(chosen) <= {*schema.categories}, "categories")
    return schema


def read_history(header: Header) -> History:
    """Read the losses and metrics after each stage."""
    train = _numbers(header["train"], "train")
    n_losses, validation = len(train), header["validation"]
    require(bool(np.isfinite(train).all()), "train")
    if validation is not None:
        validation = _numbers(validation, "validation", n_losses)
        require(bool(np.isfinite(validation).all()), "validation")
    entry = header.get("metrics", {})  # files of models without eval_metric have none
    require_kind(entry, dict, "metrics")
    metrics = {name: _numbers(values, "metrics", n_losses) for name, values in entry.items()}
    return History(train, validation, metrics=metrics)


def _numbers(values: object, name: str, length: int | None = None) -> Any:
    """Read a list of numbers of this length, or of any length but zero."""
    numbers = require_list(values, (int, float), name)
    require(len(numbers) > 0 and length in (None, len(numbers)), name)
    return np.array(numbers, dtype=np.float64)


def _parts_to_file(parts: dict[str, ModelPart]) -> Header:
    """Convert the record of the parts to plain values, without their seconds."""
    header = {name: asdict(part) | {"seconds": 0.0} for name, part in parts.items()}
    for part in header.values():
        if not part["weights"]:
            del part["weights"]
    return header


def _parts_from_file(entry: Header, n_targets: int) -> dict[str, ModelPart]:
    """Read the record of the parts: known names, and finite numbers.

    Files of earlier versions have neither the kernel nor the weights of several targets.
    """
    require(set(entry) == {"tree", "kernel"}, "parts")
    kinds = get_type_hints(ModelPart)
    del kinds["weights"]
    parts = {}
    for key, part in entry.items():
        require_kind(part, dict, "parts")
        own = {name: value for name, value in part.items() if name != "weights"}
        require(set(own) | {"kernel"} == set(kinds), "parts")
        for name, value in own.items():
            require(type(value) is kinds[name], "parts")
            require(type(value) is str or math.isfinite(value), "parts")
        weights = _numbers(part["weights"], "parts", n_targets) if "weights" in part else ()
        require(bool(np.isfinite(weights).all()), "parts")
        parts[key] = ModelPart(**own, weights=tuple(map(float, weights)))
    return parts


def resolved_to_file(resolved: ResolvedParameters) -> Header:
    """Convert resolved parameters to plain values by name."""
    kinds = get_type_hints(ResolvedParameters)
    optional = _optional_values()
    return {
        name: value if type(value) is int else kinds[name](value)
        for name, value in asdict(resolved).items()
        if name not in optional or value != optional[name]
    }


def _optional_values() -> dict[str, Any]:
    """Values that files do not contain, of parameters that earlier versions did not have."""
    return {f.name: f.default for f in fields(ResolvedParameters) if f.default is not MISSING}


_FEWEST_LEAVES = 2
_POSITIVE = ("learning_rate", "max_features", "subsample")
_SHARES = ("max_features", "subsample")


def resolved_from_file(entry: Any) -> ResolvedParameters:
    """Read resolved parameters: known names, types, and values that a fit can choose."""
    kinds = get_type_hints(ResolvedParameters)
    require_kind(entry, dict, "chosen")
    entry = _optional_values() | entry
    require(set(entry) == set(kinds), "chosen")
    for name, kind in kinds.items():
        value = entry[name]
        known = type(value) is kind or (kind is float and type(value) is int)
        least = _FEWEST_LEAVES if name == "max_leaf_nodes" else int(kind is int)
        require(known and least <= value < np.inf, f"{name} of chosen")
        require(value > 0 or name not in _POSITIVE, f"{name} of chosen")
        require(value <= 1 or name not in _SHARES, f"{name} of chosen")
    return ResolvedParameters(**entry)


_MARKS, _VERSION_OF_MARKS, _MOST_MARKS = "row_marks", 1, 1024


def _marks_to_file(marks: RowMarks) -> tuple[Header, Arrays]:
    """Convert at most 1,024 marks of training rows: their hashes (m,) uint64, ascending.

    The header has the ``version`` of the hashes, ``limit``, the largest hash that a marked row may
    have, ``n_rows``, the number of training rows that were counted, and ``n_repeated``, how many of
    them recur.
    """
    kept = marks.first(_MOST_MARKS)
    fields: Header = {"version": _VERSION_OF_MARKS, "limit": int(kept.limit)}
    fields |= {"n_rows": kept.n_rows, "n_repeated": kept.n_repeated}
    return {_MARKS: fields}, {_MARKS: np.ascontiguousarray(kept.hashes)}


def _marks_from_file(header: Header, arrays: Arrays) -> RowMarks | None:
    """Read what :func:`_marks_to_file` wrote; files of earlier versions have no marks."""
    fields = header.get(_MARKS)
    if fields is None:
        return None
    require(type(fields["version"]) is int, _MARKS)
    if fields["version"] != _VERSION_OF_MARKS:  # hashes of a later version are unknown
        return None
    hashes = require_array(arrays, _MARKS, np.uint64)
    limit, n_rows, n_repeated = (fields[name] for name in ("limit", "n_rows", "n_repeated"))
    require(0 < len(hashes) <= _MOST_MARKS and bool((hashes[1:] > hashes[:-1]).all()), _MARKS)
    require(type(limit) is int and int(hashes[-1]) <= limit < 2**64, f"limit of {_MARKS}")
    require(type(n_rows) is int and len(hashes) <= n_rows, f"n_rows of {_MARKS}")
    require(type(n_repeated) is int and 0 <= n_repeated <= n_rows, f"n_repeated of {_MARKS}")
    return RowMarks(hashes, np.uint64(limit), n_rows, n_repeated)

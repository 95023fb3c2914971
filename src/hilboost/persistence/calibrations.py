"""Calibrations of prediction intervals and sets in model files.

Header: ``calibration`` with ``by_class``; ``groups`` and ``groups_dtype`` if there are groups; and
``width`` if the scale of structured outputs is not constant.  Arrays: ``calibration.scores`` (n, k)
and, where the calibration has them, ``calibration.weight``, ``calibration.levels``,
``calibration.folds`` and ``calibration.groups``, (n,); of the scale, ``calibration.points`` (m, r),
``calibration.squares`` and ``calibration.masses``, (m,).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.model import AdditiveModel
from hilboost.model.codecs import TargetCodec
from hilboost.model.conformal import Calibration
from hilboost.model.scores import DistanceScale
from hilboost.persistence.require import Arrays, positive, require, require_array, require_finite
from hilboost.persistence.stored import Header
from hilboost.persistence.values import label_dtype, read_labels

_NAME = "calibration."


def to_file(calibration: Calibration) -> tuple[Header, Arrays]:
    """Convert to fields and arrays."""
    fields: Header = {"by_class": calibration.by_class}
    names = calibration.group_names
    if names is not None:
        fields |= {"groups": names.tolist(), "groups_dtype": label_dtype(names, "group").str}
    arrays = {"scores": calibration.scores, "weight": calibration.weight}
    arrays["levels"] = calibration.levels
    for name in ("folds", "groups"):
        numbers = getattr(calibration, name)
        arrays[name] = None if numbers is None else numbers.astype(np.int64)
    scale = calibration.scale
    if scale is not None:
        arrays |= {"points": scale.points, "squares": scale.squares, "masses": scale.weight}
        if np.isfinite(scale.width):
            fields["width"] = scale.width
    given = {_NAME + name: array for name, array in arrays.items() if array is not None}
    return fields, {name: np.ascontiguousarray(array) for name, array in given.items()}


def from_file(
    header: Header, arrays: Arrays, model: AdditiveModel, codec: TargetCodec
) -> Calibration | None:
    """Read what :func:`to_file` wrote, or the scores of a kernel machine of earlier versions."""
    if "calibration" not in header:
        return _of_machine(header, arrays, codec)
    fields = header["calibration"]
    require(type(fields["by_class"]) is bool, "calibration")
    scores = require_array(arrays, _NAME + "scores", np.float64, 2)
    missing = np.isnan(scores)
    require(scores.size > 0 and not missing.all(axis=1).any(), "calibration.scores")
    weight = folds = groups = names = None
    if _NAME + "weight" in arrays:
        weight = require_finite(arrays, _NAME + "weight")
        require(len(weight) == len(scores) and bool((weight > 0).all()), "calibration.weight")
    if _NAME + "folds" in arrays:
        folds = _numbers(arrays, "folds", len(scores))
        n_members = int(folds.max()) + 1
        even = all(len(stage.terms) % n_members == 0 for stage in model.stages)
        require(even and groups is None, "calibration.folds")
    if "groups" in fields:
        require(folds is None, "calibration.folds")
        groups = _numbers(arrays, "groups", len(scores))
        names = read_labels(fields["groups"], fields["groups_dtype"], "groups")
        require(int(groups.max()) == len(names) - 1, "calibration.groups")
    require(names is not None or not fields["by_class"], "calibration")
    levels = None
    if _NAME + "levels" in arrays:
        levels = require_finite(arrays, _NAME + "levels")
        inside = bool(((levels >= 0) & (levels <= 1)).all())
        of_fit = folds is not None and len(model.initial_raw) == 1  # no scale was learned
        require(len(levels) == len(scores) and inside and not of_fit, "calibration.levels")
    scale = _read_scale(fields, arrays, len(model.initial_raw), codec)
    return Calibration(scores, weight, folds, groups, names, fields["by_class"], scale, levels)


def _read_scale(
    fields: Header, arrays: Arrays, n_outputs: int, codec: TargetCodec
) -> DistanceScale | None:
    if _NAME + "points" not in arrays:
        return None
    require(codec.kind == "structured", "calibration.points")
    points = require_array(arrays, _NAME + "points", np.float64, 2)
    require(points.shape[1] == n_outputs and len(points) > 0, "calibration.points")
    require(bool(np.isfinite(points).all()), "calibration.points")
    squares, masses = (require_finite(arrays, _NAME + name) for name in ("squares", "masses"))
    require(len(squares) == len(points) and bool((squares >= 0).all()), "calibration.squares")
    require(len(masses) == len(points) and bool((masses > 0).all()), "calibration.masses")
    width = positive(fields["width"], "width") if "width" in fields else np.inf
    return DistanceScale(points, squares, masses, width)


def _numbers(arrays: Arrays, name: str, n: int) -> NDArray[np.int64]:
    """Return numbers (n,) of which each from 0 to the largest occurs."""
    numbers = require_array(arrays, _NAME + name, np.int64)
    require(len(numbers) == n and numbers.min() >= 0 and numbers.max() < n, _NAME + name)
    require(bool(np.bincount(numbers).all()), _NAME + name)
    return numbers


def _of_machine(header: Header, arrays: Arrays, codec: TargetCodec) -> Calibration | None:
    if "machine" not in header or not {"noise", "scores"} <= arrays.keys():
        return None
    n_targets = codec.of_numbers().n_targets if codec.kind == "numbers" else 0
    scores: Any = require_array(arrays, "scores", np.float64, 2)
    require(len(scores) > 0 and scores.shape[1] == n_targets, "scores")
    require(bool((scores >= 0).all()), "scores")
    return Calibration(scores)

"""Model files: safetensors arrays and a JSON header; nothing in them is ever executed.

Format 1, and 2 where trees split on categories or see more columns than a row has
-----------------------------------------------------------------------------------
Metadata: ``format`` (the number), ``header`` (JSON).  Arrays: ``start`` (r,); those of the trees,
as :mod:`~hilboost.model.files.trees` says, unless there are only kernel expansions; those of the
kernel expansions, as :mod:`~hilboost.model.files.expansions` says, and their kernels in the header
(``kernels``), if there are any.  Other arrays are their owner's, who checks them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from hilboost.core.errors import IncompatibleParts, InvalidModelFile
from hilboost.core.records import Part, Stage
from hilboost.learners.kernel_machine import KernelExpansion
from hilboost.learners.tree import Tree
from hilboost.model.additive import AdditiveModel
from hilboost.model.atomic import atomic_path
from hilboost.model.files import expansions, trees
from hilboost.model.files.checks import Arrays, require, require_array

__all__ = ["DAMAGE", "FORMAT", "read", "write"]

FORMAT, FORMAT_OF_CATEGORIES = 1, 2
DAMAGE = (KeyError, ValueError, TypeError, IndexError, OverflowError, RecursionError)
"""What building a model from a damaged file may raise."""


def write(
    path: str | Path,
    model: AdditiveModel,
    header: dict[str, Any],
    arrays: Mapping[str, np.ndarray] | None = None,
) -> None:
    """Write a model, all of it or nothing: the old file stays until the new one is done.

    Parameters
    ----------
    path : str or Path
    model : AdditiveModel
        Of trees and kernel expansions.
    header : dict
        As JSON takes it, with ``n_features_in``.
    arrays : mapping of str to array, optional
        Further arrays, to be had back from :func:`read`.

    Raises
    ------
    IncompatibleParts
        A base model is neither a tree nor a kernel expansion, a kernel is not one of hilboost's
        own, or the header is not JSON.
    OSError
        The file cannot be written.
    """
    from safetensors.numpy import save

    own, descriptions = _to_arrays(model)
    if descriptions:
        header = {**header, "kernels": descriptions}
    try:
        number = FORMAT_OF_CATEGORIES if _has_categories(own, header) else FORMAT
        metadata = {"format": str(number), "header": json.dumps(header)}
    except TypeError as error:
        raise IncompatibleParts(
            f"model files hold numbers and text, in JSON: {error}. Keep such a model with pickle "
            "or joblib, where you trust the file."
        ) from error
    content = save({**own, **(arrays or {})}, metadata=metadata)
    with atomic_path(Path(path)) as temporary, temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def read(path: str | Path) -> tuple[AdditiveModel, dict[str, Any], Arrays]:
    """Read a model, its header and all arrays: parse, check every bound, then build.

    Raises
    ------
    InvalidModelFile
        The file is damaged, of another kind, or of a newer format.
    OSError
        The file cannot be read.
    """
    from safetensors import SafetensorError, safe_open

    with Path(path).open("rb"):
        pass  # a missing file is an OSError, not a damaged model
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, AttributeError, *DAMAGE) as error:
        raise InvalidModelFile(f"{path} is not a hilboost model file: {error}") from error
    if metadata.get("format") not in (str(FORMAT), str(FORMAT_OF_CATEGORIES)):
        raise InvalidModelFile(
            f"{path} has format {metadata.get('format')!r}; this version reads formats {FORMAT} "
            f"and {FORMAT_OF_CATEGORIES}. Update hilboost, or save the model again."
        )
    try:
        header = json.loads(metadata["header"])
        require(isinstance(header, dict), "the header")
        n_features = int(header["n_features_in"])
        require(n_features > 0, "n_features_in")
        if "categories" in header:
            n_features = int(header["categories"]["n_columns"])
        return _from_arrays(arrays, header.get("kernels", []), n_features), header, arrays
    except DAMAGE as error:
        raise InvalidModelFile(f"{path} is damaged: {error}") from error


def _has_categories(arrays: Arrays, header: dict[str, Any]) -> bool:
    return "categories" in header or len(arrays.get("left_sets", ())) > 0


def _to_arrays(model: AdditiveModel) -> tuple[Arrays, list[Any]]:
    """Arrays, and the descriptions of kernels."""
    of_trees: list[tuple[int, Part]] = []
    of_kernels: list[tuple[int, int, Part]] = []
    for number, stage in enumerate(model.stages):
        for place, part in enumerate(stage.parts):
            if isinstance(part.model, Tree):
                of_trees.append((number, part))
            elif isinstance(part.model, KernelExpansion):
                of_kernels.append((number, place, part))
            else:
                raise IncompatibleParts(
                    "model files hold trees and kernel expansions; this model has a "
                    f"{type(part.model).__name__}. Keep such a model with pickle or joblib, where "
                    "you trust the file."
                )
    arrays: Arrays = {"start": model.start}
    descriptions: list[Any] = []
    if of_kernels:
        found, descriptions = expansions.to_arrays(of_kernels, len(model.start))
        arrays |= found
    if of_trees or not of_kernels:
        arrays |= trees.to_arrays(of_trees)
    return arrays, descriptions


def _from_arrays(arrays: Arrays, descriptions: Any, n_features: int) -> AdditiveModel:
    start = require_array(arrays, "start", np.float64)
    require(len(start) > 0 and bool(np.isfinite(start).all()), "start")
    of_trees: list[tuple[int, Part]] = []
    of_kernels: list[tuple[int, int, Part]] = []
    with_kernels = not arrays.keys().isdisjoint(expansions.NAMES)
    if with_kernels:
        of_kernels = expansions.from_arrays(arrays, descriptions, len(start), n_features)
    if not (with_kernels and arrays.keys().isdisjoint(trees.NAMES)):
        of_trees = trees.from_arrays(arrays, len(start), n_features)
    return AdditiveModel(start, _stages(of_trees, of_kernels))


def _stages(
    of_trees: list[tuple[int, Part]], of_kernels: list[tuple[int, int, Part]]
) -> tuple[Stage, ...]:
    """Expansions at their places within each stage, trees in order at the others."""
    numbers = [number for number, _ in of_trees] + [number for number, _, _ in of_kernels]
    n_stages = 1 + max(numbers, default=-1)
    require(n_stages <= len(numbers), "stage")
    tree_parts: list[list[Part]] = [[] for _ in range(n_stages)]
    for number, part in of_trees:
        tree_parts[number].append(part)
    placed: list[list[tuple[int, Part]]] = [[] for _ in range(n_stages)]
    for number, place, part in of_kernels:
        placed[number].append((place, part))
    stages = []
    for own_trees, own_expansions in zip(tree_parts, placed, strict=True):
        parts: list[Part] = []
        rest = iter(own_trees)
        for place, part in own_expansions:
            parts.extend(islice(rest, max(0, place - len(parts))))
            require(place == len(parts), "place")
            parts.append(part)
        stages.append(Stage((*parts, *rest)))
    return tuple(stages)

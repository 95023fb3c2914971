"""Model files: safetensors arrays and a JSON header.  Reading them never executes code.

Formats 1 and 2
---------------
Metadata: ``format`` (the number), ``header`` (JSON).  Arrays: ``start`` (r,); for trees,
the arrays that :mod:`~hilboost.persistence.trees` specifies; for kernel expansions, the arrays that
:mod:`~hilboost.persistence.kernel_expansions` specifies, with their kernels in the header
(``kernels``).  The header also contains linear base models and base models of user-defined classes
(``others``), as :mod:`~hilboost.persistence.values` writes them, and the names of all such classes
(``imports``).  A model of several learners has ``learner`` (n_parts,), which of them fitted each
part.  The modules that define other arrays validate them.
Format 2 is format 1 with category columns (``categories`` in the header and, for trees,
``encoding``), which a reader must not ignore.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from hilboost.core.base_model import BaseModel, Stage, Term
from hilboost.core.disk import unusable
from hilboost.core.errors import IncompatibleParts, InvalidModelFile
from hilboost.model.additive import AdditiveModel
from hilboost.persistence import kernel_expansions as expansions
from hilboost.persistence import trees
from hilboost.persistence.atomic import as_path, atomic_path
from hilboost.persistence.require import (
    DAMAGE,
    Arrays,
    require,
    require_array,
    require_kind,
    require_list,
)
from hilboost.persistence.values import (
    PICKLE,
    ValueReader,
    ValueWriter,
    checked_names,
    is_hilboost,
    refusal,
)

FORMAT = 2
_HEADER_BYTES = 10**8  # larger headers are rejected


def write(
    path: str | Path,
    model: AdditiveModel,  # made of trees, kernel expansions and user-defined base models
    header: dict[str, Any],  # serializable to JSON, with ``n_features_in``
    arrays: Mapping[str, np.ndarray] | None = None,  # additional arrays, which :func:`read` returns
    writer: ValueWriter | None = None,  # the writer of values in the header
) -> None:
    """Write a model atomically: the old file remains until the new one is complete."""
    from safetensors.numpy import save

    writer = ValueWriter() if writer is None else writer
    own, more = _to_arrays(model, writer)
    header = {**header, **more}
    if writer.imports:
        header["imports"] = writer.imports
    try:
        with_categories = "categories" in header or len(own.get("left_sets", ())) > 0
        number = FORMAT if with_categories else 1
        metadata = {"format": str(number), "header": json.dumps(header)}
    except TypeError as error:
        raise IncompatibleParts(
            f"the header of a model file must be valid JSON: {error}. {PICKLE}"
        ) from error
    content = save({**own, **(arrays or {}), **writer.arrays}, metadata=metadata)
    if int.from_bytes(content[:8], "little") > _HEADER_BYTES:
        raise IncompatibleParts(
            f"the header of this model exceeds the limit of {_HEADER_BYTES // 10**6} MB. Use fewer "
            f"or shorter names, or fewer custom base models. {PICKLE}"
        )
    file_path = as_path(path, "save")
    with atomic_path(file_path, len(content)) as temporary, temporary.open("wb") as file:
        file.writelines(_in_order(content))
        file.flush()
        os.fsync(file.fileno())


def _in_order(content: bytes) -> tuple[bytes, memoryview]:
    """Sort the header of a file, whose entries safetensors writes in any order."""
    size = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:size])
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # so that the arrays remain aligned
    return len(text).to_bytes(8, "little") + text, memoryview(content)[size:]


def read(
    path: str | Path, trusted: Collection[str] = ()
) -> tuple[AdditiveModel, dict[str, Any], Arrays]:
    """Read a model, its header and all arrays, and import only the trusted ``"module:Class"``."""
    from safetensors import SafetensorError, safe_open

    trusted = checked_names(trusted)
    try:
        with Path(path).open("rb"):
            pass  # a missing file is an OSError, not a damaged model
    except OSError as error:
        raise unusable(path, error, "read") from error
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, AttributeError, *DAMAGE) as error:
        raise InvalidModelFile(
            f"{path} is not a hilboost model file, or is incomplete; pass a file written by "
            "hilboost.save."
        ) from error
    if metadata.get("format") not in [str(number + 1) for number in range(FORMAT)]:
        raise InvalidModelFile(
            f"{path} has format {metadata.get('format')!r}; this version supports formats 1 to "
            f"{FORMAT}. Update hilboost, or save the model again."
        )
    try:
        header = json.loads(metadata["header"])
        require_kind(header, dict, "the header")
        n_features = int(header["n_features_in"])
        require(n_features > 0, "n_features_in")
        if "encoding" in header:
            n_features = int(header["encoding"]["n_columns"])
        _check_trust(header.get("imports", []), trusted)
        reader = ValueReader(arrays, trusted)
        return _from_arrays(arrays, header, n_features, reader), header, arrays
    except InvalidModelFile as error:
        raise InvalidModelFile(f"{path}: {error}") from error
    except DAMAGE as error:
        raise InvalidModelFile(f"{path} is damaged: {error}") from error


def _check_trust(imports: object, trusted: Collection[str]) -> None:
    """Check all names before anything is imported."""
    names = require_list(imports, (str,), "imports")
    if not set(names) <= set(trusted):
        raise InvalidModelFile(refusal(names))


def _to_arrays(model: AdditiveModel, writer: ValueWriter) -> tuple[Arrays, dict[str, Any]]:
    """Convert a model to arrays and their entries in the header."""
    of_trees: list[tuple[int, Term]] = []
    of_kernels: list[tuple[int, int, Term]] = []
    others: list[Any] = []
    for number, stage in enumerate(model.stages):
        for place, term in enumerate(stage.terms):
            if term.model.family == "trees":
                of_trees.append((number, term))
            elif term.model.family == "expansions":
                of_kernels.append((number, place, term))
            else:
                others.append(_other(number, place, term, writer))
    arrays: Arrays = {"start": model.initial_raw}
    more: dict[str, Any] = {"others": others} if others else {}
    if of_kernels:
        found, more["kernels"] = expansions.to_arrays(of_kernels, len(model.initial_raw), writer)
        arrays |= found
    if of_trees or not (of_kernels or others):
        arrays |= trees.to_arrays(of_trees)
    learners = [part.learner for stage in model.stages for part in stage.terms]
    if any(learner is not None for learner in learners):
        arrays["learner"] = np.array([-1 if k is None else k for k in learners], dtype=np.int64)
    return arrays, more


def _other(number: int, place: int, term: Term, writer: ValueWriter) -> dict[str, Any]:
    """Write a linear or user-defined base model."""
    model = term.model.for_files()
    if is_hilboost(type(model)) and not vars(type(model)).get("in_files"):
        raise IncompatibleParts(
            "model files support trees, kernel expansions, linear and custom base models, and "
            f"built-in classes that declare in_files = True, but not {model.described()}. {PICKLE}"
        )
    return {
        "stage": number,
        "place": place,
        "columns": [term.columns.start, term.columns.stop],
        "coefficient": term.coefficient.tolist(),
        "model": writer.write(model, "a base model"),
    }


def _from_arrays(
    arrays: Arrays, header: dict[str, Any], n_features: int, reader: ValueReader
) -> AdditiveModel:
    start = require_array(arrays, "start", np.float64)
    require(len(start) > 0 and bool(np.isfinite(start).all()), "start")
    of_trees: list[tuple[int, Term]] = []
    placed = _others(header.get("others", []), len(start), n_features, reader)
    with_kernels = not arrays.keys().isdisjoint(expansions.NAMES)
    if with_kernels:
        descriptions, n_others = header.get("kernels", []), len(placed)
        placed += expansions.from_arrays(
            arrays, descriptions, len(start), n_features, reader, n_others
        )
    if not placed or not arrays.keys().isdisjoint(trees.NAMES):
        of_trees = trees.from_arrays(arrays, len(start), n_features)
    placed.sort(key=lambda entry: entry[:2])
    stages = _stages(of_trees, placed)
    return AdditiveModel(start, _with_learners(stages, arrays) if "learner" in arrays else stages)


def _with_learners(stages: tuple[Stage, ...], arrays: Arrays) -> tuple[Stage, ...]:
    """Read which learner fitted each part, in their order."""
    numbers = require_array(arrays, "learner", np.int64)
    require(len(numbers) == sum(len(stage.terms) for stage in stages), "learner")
    require(bool((numbers >= 0).all()), "learner")
    number = iter(numbers.tolist())
    return tuple(
        Stage(tuple(replace(part, learner=next(number)) for part in stage.terms))
        for stage in stages
    )


def _others(
    described: Any, n_outputs: int, n_features: int, reader: ValueReader
) -> list[tuple[int, int, Term]]:
    """Read the stage, place and term of every linear or user-defined base model."""
    require_kind(described, list, "others")
    found = []
    for entry in described:
        first, last = entry["columns"]
        numbers = (entry["stage"], entry["place"], first, last)
        require(all(type(number) is int and number >= 0 for number in numbers), "others")
        require(first < last <= n_outputs, "others")
        coefficient = np.array(entry["coefficient"], dtype=np.float64)
        require(coefficient.shape == (last - first,), "others")
        require(bool(np.isfinite(coefficient).all()), "others")
        model = reader.part(entry["model"], BaseModel)
        if is_hilboost(type(model)):
            require(model.has_shape(n_features, last - first), "a base model")
        term = Term(model, slice(first, last), coefficient)
        found.append((entry["stage"], entry["place"], term))
    return found


def _stages(
    of_trees: list[tuple[int, Term]], of_kernels: list[tuple[int, int, Term]]
) -> tuple[Stage, ...]:
    """Merge the terms of each stage: expansions at their places, trees in order at the others."""
    numbers = [number for number, _ in of_trees] + [number for number, _, _ in of_kernels]
    n_stages = 1 + max(numbers, default=-1)
    require(n_stages <= len(numbers), "stage")
    tree_terms: list[list[Term]] = [[] for _ in range(n_stages)]
    for number, term in of_trees:
        tree_terms[number].append(term)
    placed: list[list[tuple[int, Term]]] = [[] for _ in range(n_stages)]
    for number, place, term in of_kernels:
        placed[number].append((place, term))
    stages = []
    for own_trees, own_expansions in zip(tree_terms, placed, strict=True):
        terms: list[Term] = []
        rest = iter(own_trees)
        for place, term in own_expansions:
            terms.extend(islice(rest, max(0, place - len(terms))))
            require(place == len(terms), "place")
            terms.append(term)
        stages.append(Stage((*terms, *rest)))
    return tuple(stages)

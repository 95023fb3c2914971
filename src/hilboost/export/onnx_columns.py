"""Table columns as ONNX inputs, and conversion of categories to the numbers of a model.

::

    X (n, d)  or  area (n, 1), town (n, 1), …        the inputs
    codes of the levels, or their shares             inputs of the trees
    means of levels and of pairs of levels           followed by the target encoding
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.errors import IncompatibleParts
from hilboost.encoders.encoding import Encoding
from hilboost.encoders.target_encoding import LevelKeys
from hilboost.export.columns import named
from hilboost.export.onnx_graph import ML, Graph
from hilboost.tables.encoding import UNSEEN
from hilboost.tables.schema import Column, Schema, category_columns, place

OUTPUTS = ("prediction", "label", "probabilities", "scores")


@dataclass(frozen=True)
class Input:
    """An input of an ONNX graph."""

    name: str
    width: int  # the shape of the input is (n, width)
    is_text: bool


def require_levels(schema: Schema, dtype: str) -> None:
    """Reject levels that text inputs, or numeric inputs of this dtype, cannot represent."""
    for column in schema.columns:
        is_held: Any = _is_unicode if column.holds_text else partial(_is_exact, dtype=dtype)
        level = next((level for level in column.levels if not is_held(level)), None)
        if level is None:
            continue
        if column.holds_text:
            reason = "is not valid Unicode text; correct it and fit again"
        elif dtype == "float32":
            reason = "cannot be represented in float32; use dtype='float64'"
        else:
            reason = "cannot be represented in float64; fit with the levels as text"
        raise IncompatibleParts(
            f"to_onnx cannot export {place(column.name)}, because its level {level!r} {reason}."
        )


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _is_exact(level: float, dtype: str) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.float64(level).astype(dtype).item() == level)


def inputs_of(schema: Schema) -> list[Input]:
    """Return one numeric matrix, or one input for each column if some contain text."""
    if not any(column.holds_text for column in schema.columns):
        return [Input("X", schema.n_columns, False)]
    inputs: list[Input] = []
    taken = {named(column.name) for column in schema.columns}
    for column in schema.columns:
        name = named(column.name)
        # Names of outputs, and those that begin with a slash, belong to the graph.
        if not name or name in OUTPUTS or name.startswith("/"):
            while name in taken:
                name = f"column {name}"
            taken.add(name)
        inputs.append(Input(name, 1, column.holds_text))
    return inputs


def add_table(graph: Graph, inputs: list[Input], schema: Schema, encoding: Encoding | None) -> str:
    """Build the input matrix of the model, (n, d) or wider, from float64 and text inputs."""
    if not schema.categories:
        return inputs[0].name
    if len(inputs) == 1 and not inputs[0].is_text:
        X, columns = inputs[0].name, map(graph.integers, range(schema.n_columns))
        names = [graph.add("Gather", X, column, axis=1) for column in columns]
    else:
        names = [one.name for one in inputs]
    kept = dict(encoding.kept) if encoding else {}
    shares = dict(encoding.shares) if encoding else {}
    codes = {k: _codes(graph, names[k], schema.columns[k]) for k in schema.categories}
    parts = list(names)
    for k, n_levels in category_columns(schema):
        values, unseen = np.arange(n_levels, dtype=np.float64), UNSEEN
        if k in kept:
            values = kept[k].astype(np.float64)
        elif k in shares:
            values, unseen = shares[k], 0.0
        of_code = graph.constant([*values, np.nan, unseen])  # the code -1 selects the last one
        parts[k] = graph.add("Gather", of_code, codes[k], axis=0)
    if encoding is not None and encoding.statistics:
        parts.append(_add_statistics(graph, codes, encoding))
    return graph.add("Concat", *parts, axis=1)


def _codes(graph: Graph, name: str, column: Column) -> str:
    """Compute level codes: the next code for missing values, -1 for others; (n, 1) int64.

    An empty string is a missing value, unless it is a level.
    """
    levels: list[Any] = list(column.levels)
    if column.holds_text:
        keys = levels if "" in levels else [*levels, ""]
        return _places(graph, name, np.array(keys, dtype=object), -1)
    known = _places(graph, name, np.array(levels, dtype=np.float64), -1)
    return graph.add("Where", graph.add("IsNaN", name), graph.integers(len(levels)), known)


def _places(graph: Graph, name: str, keys: NDArray[Any], other: int) -> str:
    """Find the index of every value among the keys, ``other`` if there is none."""
    return graph.add(
        "LabelEncoder",
        name,
        domain=ML,
        keys_tensor=keys,
        values_tensor=np.arange(len(keys)),
        default_tensor=np.array([other]),
    )


def _add_statistics(graph: Graph, codes: Mapping[int, str], encoding: Encoding) -> str:
    """Compute the target encoding of all members, (n, width); members share their sources."""
    first = encoding.statistics[0]
    parts: list[str] = []
    order: list[int] = []
    n_targets = len(first.prior)
    for number, source in enumerate(first.sources):
        keys = _key_numbers(graph, codes, source)
        tables = []
        for member, statistics in enumerate(encoding.statistics):
            mass = statistics.weights[number][:, None] + statistics.strength
            prior = statistics.strength * statistics.prior
            tables.append((statistics.sums[number] + prior) / mass)
            place = (member * len(first.sources) + number) * n_targets
            order += range(place, place + n_targets)
        parts.append(graph.add("Gather", graph.constant(np.hstack(tables)), keys, axis=0))
    together = graph.add("Concat", *parts, axis=1)
    return graph.add("Gather", together, graph.integers(*np.argsort(order).tolist()), axis=1)


def _key_numbers(graph: Graph, codes: Mapping[int, str], source: LevelKeys) -> str:
    """Compute the key number of every row, (n,) int64, as :meth:`LevelKeys.numbers` does."""
    key, is_unseen = "", ""
    for k, size in zip(source.columns, source.sizes, strict=True):
        unseen = graph.add("Less", codes[k], graph.integers(0))
        if not key:
            key, is_unseen = codes[k], unseen
            continue
        key = graph.add("Add", graph.add("Mul", key, graph.integers(size + 1)), codes[k])
        is_unseen = graph.add("Or", is_unseen, unseen)
    key = graph.add("Where", is_unseen, graph.integers(-1), key)
    number = _places(graph, key, source.keys, len(source.keys))
    return graph.add("Squeeze", number, graph.integers(1))

"""Fitted output spaces in model files.

``output.training``: the training outputs that predictions are selected from, one in each row; for
texts and nodes ``output.labels``, JSON in UTF-8.  ``output.pivots`` (r,) and ``output.codes`` (n,
r) are the factor of a Gram matrix, ``output.diagonal`` and ``output.gram`` its stored entries.
The readers below name the additional arrays of some spaces.  ``span.rows``, ``span.codes``:
training outputs that span the space.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.output_space import Embedding
from hilboost.kernels.pivoted_cholesky import GramFactor
from hilboost.outputs import Compositions, Graphs, PositiveMatrices, Rankings, Strings
from hilboost.outputs.compositions import CompositionEmbedding
from hilboost.outputs.distributions import DistributionEmbedding
from hilboost.outputs.graphs import MOST_ITERATIONS, GraphEmbedding
from hilboost.outputs.hierarchies import HierarchyEmbedding
from hilboost.outputs.kernel_output import RowEmbedding, embedding_of_rows
from hilboost.outputs.label_sets import LabelSetEmbedding
from hilboost.outputs.precomputed import PrecomputedEmbedding
from hilboost.outputs.rankings import RankingEmbedding
from hilboost.outputs.strings import LONGEST, StringEmbedding
from hilboost.outputs.vectors import VectorEmbedding
from hilboost.persistence.kernel_expansions import describe, read_kernel, try_kernel
from hilboost.persistence.require import (
    Arrays,
    require,
    require_array,
    require_finite,
    require_kind,
    require_list,
)
from hilboost.persistence.values import ValueReader, ValueWriter, is_hilboost

Fields = dict[str, Any]
Span = tuple[np.ndarray, Floats, int]
"""Rows (k,) of training outputs that span the space, their points (k, r), number of all rows."""


def to_arrays(embedding: Embedding, span: Span, writer: ValueWriter) -> tuple[Fields, Arrays]:
    """Convert an output space to fields of the header, and arrays."""
    rows, codes, n_train = span
    arrays: Arrays = {"span.rows": np.asarray(rows, dtype=np.int64), "span.codes": codes}
    name = vars(type(embedding)).get("file_name")
    fields: Fields
    if name is not None:
        fields, own = _KINDS[name].write(embedding, writer)
        arrays |= {f"output.{key}": array for key, array in own.items()}
    else:
        fields = {"value": writer.write(embedding, "the output space")}
    contiguous = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
    return {"type": name or "value", "n_train": int(n_train), **fields}, contiguous


def from_arrays(
    fields: Any, arrays: Arrays, n_outputs: int, reader: ValueReader
) -> tuple[Embedding, Span]:
    """Read the output space, of ``n_outputs`` dimensions, and its span."""
    require_kind(fields, dict, "the output space")
    n_train = _whole(fields["n_train"], "n_train")
    rows = require_array(arrays, "span.rows", np.int64)
    codes = require_finite(arrays, "span.codes", 2)
    require(codes.shape == (len(rows), n_outputs) and len(set(rows.tolist())) == len(rows), "span")
    require(bool(((rows >= 0) & (rows < n_train)).all()), "span.rows")
    if fields["type"] == "value":
        embedding = reader.part(fields["value"], Embedding)
        if is_hilboost(type(embedding)):
            require(embedding.has_shape(n_outputs), "the output space")
    else:
        own = {key[7:]: array for key, array in arrays.items() if key.startswith("output.")}
        embedding = _KINDS[fields["type"]].read(fields, own, n_outputs, reader)
    return embedding, (rows, codes, n_train)


# Checks


def _whole(value: Any, what: str, least: int = 1, most: int = 2**53) -> int:
    require(type(value) is int and least <= value <= most, what)
    return int(value)


def _training(arrays: Arrays, n_columns: int | None = None) -> Floats:
    """Read at least one row of numbers."""
    rows = require_finite(arrays, "training", 2)
    require(rows.size > 0 and n_columns in (None, rows.shape[1]), "training outputs")
    return rows


def _shape(fields: Fields, size: int) -> tuple[int, ...]:
    """Read the shape of a label with this number of entries."""
    given = require_list(fields["shape"], (int,), "shape")
    require(len(given) < 32, "shape")
    shape = tuple(_whole(n, "shape") for n in given)
    require(math.prod(shape) == size, "shape")
    return shape


def _write_labels(labels: Any) -> np.ndarray:
    """Encode individual labels as JSON in UTF-8."""
    text = json.dumps(ValueWriter().write(list(labels), "a label"))
    return np.frombuffer(text.encode(), dtype=np.uint8)


def _read_labels(arrays: Arrays, name: str) -> list[Any]:
    """Read individual labels, which must be distinct."""
    written = json.loads(require_array(arrays, name, np.uint8).tobytes().decode())
    labels = require_kind(ValueReader({}).read(written), list, name)
    require(len(labels) == len(set(labels)) > 0, name)
    return labels


def _write_factor(factor: GramFactor) -> Arrays:
    return {"pivots": factor.pivots, "codes": factor.codes}


def _read_factor(arrays: Arrays, n_outputs: int) -> GramFactor:
    pivots = require_array(arrays, "pivots", np.int64)
    codes = require_finite(arrays, "codes", 2)
    n = len(codes)
    require(codes.shape[1] == len(pivots) == n_outputs <= n, "codes")
    require(bool(((pivots >= 0) & (pivots < n)).all()), "pivots")
    require(len(set(pivots.tolist())) == len(pivots), "pivots")
    factor = GramFactor(pivots, codes)
    triangle = factor.triangle
    require(bool((triangle.diagonal() > 0).all()) and not np.triu(triangle, 1).any(), "codes")
    return factor


# One space each


def _training_and(*names: str) -> Callable[[Any, ValueWriter], tuple[Fields, Arrays]]:
    """Return a writer of the training outputs, and of plain attributes of a space."""
    return lambda space, writer: (
        {name: getattr(space, name) for name in names},
        {"training": space.training},
    )


def _read_vectors(fields: Fields, arrays: Arrays, r: int, reader: ValueReader) -> Embedding:
    return VectorEmbedding(_training(arrays, r), _shape(fields, r))


def _write_rows(space: RowEmbedding, writer: ValueWriter) -> tuple[Fields, Arrays]:
    fields = {"shape": list(space.shape), "kernel": describe(space.kernel, writer)}
    return fields, {"training": space.training, **_write_factor(space.factor)}


def _read_rows(fields: Fields, arrays: Arrays, r: int, reader: ValueReader) -> Embedding:
    training, factor = _training(arrays), _read_factor(arrays, r)
    require(len(training) == len(factor.codes), "training outputs")
    kernel = read_kernel(fields["kernel"], training.shape[1], reader)
    try_kernel(kernel, training[:1])
    return embedding_of_rows(kernel, training, factor, _shape(fields, training.shape[1]))


def _write_precomputed(space: PrecomputedEmbedding, writer: ValueWriter) -> tuple[Fields, Arrays]:
    rest = {} if space.gram is None else {"gram": space.gram}
    return {}, {"diagonal": space.diagonal, **rest, **_write_factor(space.factor)}


def _read_precomputed(fields: Fields, arrays: Arrays, r: int, reader: ValueReader) -> Embedding:
    factor, diagonal = _read_factor(arrays, r), require_finite(arrays, "diagonal")
    n = len(diagonal)
    require(n == len(factor.codes) and bool((diagonal >= 0).all()), "diagonal")
    gram = require_finite(arrays, "gram", 2) if "gram" in arrays else None
    require(gram is None or gram.shape == (n, n), "gram")
    return PrecomputedEmbedding(factor, diagonal, gram)


def _write_label_sets(space: LabelSetEmbedding, writer: ValueWriter) -> tuple[Fields, Arrays]:
    dtype = None if space.dtype is None else space.dtype.str
    arrays = {"training": space.training, "scale": space.scale}
    arrays["labels"] = _write_labels(space.names)
    return {"mean_size": int(space.mean_size), "dtype": dtype}, arrays


def _read_label_sets(fields: Fields, arrays: Arrays, r: int, reader: ValueReader) -> Embedding:
    training = require_array(arrays, "training", np.bool_, 2)
    scale, names = require_finite(arrays, "scale"), _read_labels(arrays, "labels")
    require(len(training) > 0 and training.shape[1] == len(scale) == len(names) == r, "labels")
    require(bool((scale > 0).all()), "scale")
    dtype = None
    if fields["dtype"] is not None:
        require_kind(fields["dtype"], str, "dtype")
        dtype = np.dtype(fields["dtype"])
        require(dtype.kind in "biuf", "dtype")
    size = _whole(fields["mean_size"], "mean_size", most=r)
    return LabelSetEmbedding(training, tuple(names), scale, size, dtype)


def _write_rankings(space: RankingEmbedding, writer: ValueWriter) -> tuple[Fields, Arrays]:
    return {"distance": space.distance, "ties": bool(space.ties)}, {"training": space.training}


def _read_rankings(fields: Fields, arrays: Arrays, r: int, reader: ValueReader) -> Embedding:
    training = require_array(arrays, "training", np.int64, 2)
    K, distance = training.shape[1], require_kind(fields["distance"], str, "distance")
    require(type(fields["ties"]) is bool, "ties")
    sizes = {"kemeny": K * (K - 1) // 2, "spearman": K, "hamming": K * K}
    require(sizes[distance] == r, "training outputs")
    found = Rankings(distance, fields["ties"]).fit(training)
    require(np.array_equal(found.training, training), "training outputs")
    return found


def _read_distributions(fields: Fields, arrays: Arrays, r: int, reader: ValueReader) -> Embedding:
    training = _training(arrays, r)
    require(bool((np.diff(training, axis=1) >= 0).all()), "training outputs")
    return DistributionEmbedding(training)


def _read_compositions(fields: Fields, arrays: Arrays, r: int, reader: ValueReader) -> Embedding:
    geometry, training = require_kind(fields["geometry"], str, "geometry"), _training(arrays)
    require(training.shape[1] == (r + 1 if geometry == "aitchison" else r), "training outputs")
    Compositions(geometry).fit(training)
    return CompositionEmbedding(training, geometry)


def _read_matrices(fields: Fields, arrays: Arrays, r: int, reader: ValueReader) -> Embedding:
    training = require_finite(arrays, "training", 3)
    p = training.shape[2]
    require(len(training) > 0 and p * (p + 1) // 2 == r, "training outputs")
    return PositiveMatrices().fit(training)


def _write_strings(space: StringEmbedding, writer: ValueWriter) -> tuple[Fields, Arrays]:
    ends = [space.lengths.start, space.lengths.stop - 1]
    arrays = {"labels": _write_labels(space.training), "grams": _write_labels(space.vocabulary)}
    among = [space.string_lengths.start, space.string_lengths.stop - 1]
    fields = {"lengths": ends, "normalise": bool(space.normalize)}
    return fields | {"string_lengths": among, "max_nodes": space.max_nodes}, arrays


def _read_strings(fields: Fields, arrays: Arrays, r: int, reader: ValueReader) -> Embedding:
    training, grams = _read_labels(arrays, "labels"), _read_labels(arrays, "grams")
    require({type(text) for text in [*training, *grams]} in ({str}, {tuple}), "labels")
    require(len(grams) == r and type(fields["normalise"]) is bool, "grams")
    first, last = fields["lengths"]
    lengths = range(_whole(first, "lengths"), _whole(last, "lengths", least=first) + 1)
    # Texts have n-grams of every length, so their number is in proportion to the file size.
    longest = max(map(len, training))
    require({len(gram) for gram in grams} == set(range(first, min(last, longest) + 1)), "lengths")
    tokens = set(chain.from_iterable(grams))
    require(tokens <= set(chain.from_iterable(training)), "grams")
    vocabulary = {gram: j for j, gram in enumerate(grams)}
    # Files of earlier versions have no limits of exact decoding.
    low, high = fields.get("string_lengths", [min(map(len, training)), longest])
    low = _whole(low, "string_lengths", 0)
    among = range(low, _whole(high, "string_lengths", low, max(longest, LONGEST)) + 1)
    max_nodes = _whole(fields.get("max_nodes", Strings.max_nodes), "max_nodes")
    return StringEmbedding(training, vocabulary, lengths, fields["normalise"], among, max_nodes)


def _write_graphs(space: GraphEmbedding, writer: ValueWriter) -> tuple[Fields, Arrays]:
    fields = {"n_iterations": len(space.refinement.neighborhoods)}
    arrays = {"labels": _write_labels(space.training)}
    return fields | {"normalize": bool(space.normalize)}, arrays


def _read_graphs(fields: Fields, arrays: Arrays, r: int, reader: ValueReader) -> Embedding:
    training, normalize = _read_labels(arrays, "labels"), fields["normalize"]
    require(type(normalize) is bool, "normalize")
    n_iterations = _whole(fields["n_iterations"], "n_iterations", 0, MOST_ITERATIONS)
    found = Graphs(n_iterations, normalize).fit(training)
    require(found.training == training and found.shared.max() == r - 1, "labels")
    return found


def _write_hierarchy(space: HierarchyEmbedding, writer: ValueWriter) -> tuple[Fields, Arrays]:
    arrays = {name: getattr(space, name) for name in ("parent", "depth", "length", "training")}
    return {}, {"labels": _write_labels(space.nodes), **arrays}


def _read_hierarchy(fields: Fields, arrays: Arrays, r: int, reader: ValueReader) -> Embedding:
    nodes, length = _read_labels(arrays, "labels"), require_finite(arrays, "length")
    parent, depth = (require_array(arrays, name, np.int64) for name in ("parent", "depth"))
    require(len(nodes) == len(length) == len(parent) == len(depth) == r, "labels")
    # Parents come before their children, so there are no cycles.
    require(bool(((parent >= -1) & (parent < np.arange(r))).all()), "parent")
    levels = np.where(parent < 0, 0, depth[parent] + 1)
    require(bool((depth == levels).all() and (np.diff(depth) >= 0).all()), "depth")
    require(bool((length > 0).all()), "length")
    training = require_array(arrays, "training", np.int64)
    require(len(training) > 0 and bool((np.diff(training) > 0).all()), "training outputs")
    require(training[0] >= 0 and training[-1] < r, "training outputs")
    return HierarchyEmbedding(tuple(nodes), parent, depth, length, training)


@dataclass(frozen=True)
class _Kind:
    """Writer and reader of the embeddings with one ``file_name``."""

    write: Callable[[Any, ValueWriter], tuple[Fields, Arrays]]
    read: Callable[[Fields, Arrays, int, ValueReader], Embedding]


_KINDS = MappingProxyType(
    {
        "compositions": _Kind(_training_and("geometry"), _read_compositions),
        "distributions": _Kind(_training_and(), _read_distributions),
        "graphs": _Kind(_write_graphs, _read_graphs),
        "hierarchy": _Kind(_write_hierarchy, _read_hierarchy),
        "label_sets": _Kind(_write_label_sets, _read_label_sets),
        "positive_matrices": _Kind(_training_and(), _read_matrices),
        "precomputed": _Kind(_write_precomputed, _read_precomputed),
        "rankings": _Kind(_write_rankings, _read_rankings),
        "rows": _Kind(_write_rows, _read_rows),
        "strings": _Kind(_write_strings, _read_strings),
        "vectors": _Kind(_training_and("shape"), _read_vectors),
    }
)

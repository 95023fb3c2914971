"""Kernel expansions in model files.

A sum may contain an expansion several times, expansions may share basis vectors, and nested
machines share the first rows of an array.  Each of these is written once::

    part ──→ expansion ──→ basis ──→ rows.0, rows.1, …
    stage, place           │ length, kernel, inputs
    coefficient            weights

``part.stage``, ``part.place`` (within the stage), ``part.expansion`` (n_parts,) and
``part.coefficient`` (n_parts, r); ``expansion.basis`` (n_expansions,) and ``expansion.weights``
(flat, (m, r) each), ``expansion.in_float64`` (n_expansions,) bool, false without this array; if
some have fewer than all outputs, ``part.columns`` (n_parts, 2), the first and the end, and
``expansion.outputs`` (n_expansions,), their numbers;
``basis.rows``, ``basis.length``, ``basis.kernel``, ``basis.inputs``
(n_bases,): the first ``length`` of an array of rows; ``rows.0``, … (m, d) float32 or float64;
``inputs.columns`` (n_inputs, q), -1 after the last one of each, all columns without this array;
``inputs.centre``, ``inputs.scale``, and ``inputs.low`` and ``inputs.high`` if values are bounded
(n_inputs, q + p); ``levels.k.j`` for codes of the j-th column of the k-th inputs, and
``rotation.k`` (q + p, width) and ``warps.k.j`` (points, 2) for these inputs.  If missing values are
replaced, by ``inputs.numbers`` (n_inputs, q), ``inputs.missing`` is -1 for inputs without any, and
``inputs.indicated`` (n_inputs, p) are the columns with an indicator, which stands behind all
columns, -1 after the last one; without this array, those for which ``inputs.missing`` is 1.
Kernels are descriptions in the header.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from hilboost.core.base_model import Term
from hilboost.core.dtypes import Floats, Ints
from hilboost.core.errors import IncompatibleParts
from hilboost.kernels import Kernel, from_description, to_description
from hilboost.learners.kernel_machine.expansion import KernelExpansion
from hilboost.learners.kernel_machine.feature_map import UNBOUNDED, FeatureMap
from hilboost.persistence.require import (
    Arrays,
    require,
    require_array,
    require_below,
    require_finite,
    require_kind,
)
from hilboost.persistence.values import ValueReader, ValueWriter, is_hilboost

NAMES = frozenset(
    {
        *("part.stage", "part.place", "part.expansion", "part.coefficient", "part.columns"),
        *("expansion.basis", "expansion.weights", "expansion.in_float64", "expansion.outputs"),
        *("basis.rows", "basis.length", "basis.kernel", "basis.inputs"),
        *("inputs.centre", "inputs.scale", "inputs.low", "inputs.high"),
        *("inputs.columns", "inputs.numbers", "inputs.missing", "inputs.indicated"),
    }
)
_DEEPEST = 64
_SHARED_BY = 64  # A sum copies the basis of each expansion; this bounds the expansion of a file.


class _Numbered:
    """Objects numbered in the order of first appearance."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, key: object, item: object) -> int:
        """Return the number of a key; the item of a new key is stored."""
        if key not in self._numbers:
            self._numbers[key] = len(self.items)
            self.items.append(item)
        return self._numbers[key]

    def by_identity(self, item: object) -> int:
        """Return the number of an object, which the caller must keep alive."""
        return self.number(id(item), item)


def to_arrays(
    terms: list[tuple[int, int, Term]], n_outputs: int, writer: ValueWriter | None = None
) -> tuple[Arrays, list[Any]]:
    """Convert the stage, place and term of every expansion; also return the kernel descriptions."""
    kernels, inputs, expansions, bases = (_Numbered() for _ in range(4))
    named: list[int] = []
    of_expansions: list[int] = []
    for _, _, term in terms:
        model: Any = term.model
        named.append(expansions.by_identity(model))
        if len(expansions.items) > len(of_expansions):
            own = kernels.by_identity(model.kernel), inputs.by_identity(model.inputs)
            of_expansions.append(bases.number((id(model.basis), *own), (model.basis, *own)))
    arrays = _rows_to_arrays([basis for basis, _, _ in bases.items])
    arrays |= {
        "part.stage": np.array([number for number, _, _ in terms], dtype=np.int64),
        "part.place": np.array([place for _, place, _ in terms], dtype=np.int64),
        "part.expansion": np.array(named, dtype=np.int64),
        "part.coefficient": np.stack(
            [np.append(term.coefficient, np.ones(n_outputs))[:n_outputs] for _, _, term in terms]
        ),
        "expansion.basis": np.array(of_expansions, dtype=np.int64),
        "expansion.weights": np.concatenate([m.weights.ravel() for m in expansions.items]),
        "basis.kernel": np.array([kernel for _, kernel, _ in bases.items], dtype=np.int64),
        "basis.inputs": np.array([number for _, _, number in bases.items], dtype=np.int64),
    }
    columns = np.array([[term.columns.start, term.columns.stop] for _, _, term in terms])
    if (columns != [0, n_outputs]).any():
        arrays["part.columns"] = columns
        arrays["expansion.outputs"] = np.array([m.weights.shape[1] for m in expansions.items])
    if any(model.in_float64 for model in expansions.items):
        arrays["expansion.in_float64"] = np.array([m.in_float64 for m in expansions.items])
    return arrays | _maps_to_arrays(inputs.items), [describe(one, writer) for one in kernels.items]


def _maps_to_arrays(maps: list[FeatureMap]) -> Arrays:
    """Collect the scales of all inputs, and the bounds and numbers if any has some."""
    arrays = {
        "inputs.columns": _stacked([each.columns for each in maps], -1),
        "inputs.centre": _stacked([each.center for each in maps], 0.0),
        "inputs.scale": _stacked([each.scale for each in maps], 1.0),
    }
    if any(each.is_bounded for each in maps):
        arrays["inputs.low"] = _stacked([each.low for each in maps], 0.0)
        arrays["inputs.high"] = _stacked([each.high for each in maps], 0.0)
    if any(each.numbers is not None for each in maps):
        arrays["inputs.numbers"] = _stacked([_numbers(each) for each in maps], 0.0)
        flags = [np.full(len(one.columns), -1 if one.numbers is None else 0) for one in maps]
        arrays["inputs.missing"] = _stacked(flags, 0)
        arrays["inputs.indicated"] = _stacked([each.missing for each in maps], -1)
    for k, each in enumerate(maps):
        if each.rotation is not None:
            arrays[f"rotation.{k}"] = np.ascontiguousarray(each.rotation)
        arrays |= {f"levels.{k}.{place}": table for place, table in each.levels}
        arrays |= {f"warps.{k}.{place}": np.ascontiguousarray(own) for place, own in each.warps}
    return arrays


def _numbers(inputs: FeatureMap) -> Floats:
    return np.zeros(len(inputs.columns)) if inputs.numbers is None else inputs.numbers


def _stacked(rows: list[np.ndarray], fill: float) -> np.ndarray:
    """Rows of different lengths as one array."""
    width = max(map(len, rows))
    return np.stack([np.append(row, np.full(width - len(row), fill)) for row in rows])


def _rows_to_arrays(bases: list[np.ndarray]) -> Arrays:
    """Collect basis vectors; of those that share the start of an array, only the longest."""
    longest = _Numbered()
    users: Counter[Any] = Counter()
    numbers: list[int] = []
    for basis in bases:
        address = basis.__array_interface__["data"][0] if basis.flags.c_contiguous else id(basis)
        key: Any = (basis.flags.c_contiguous, address, basis.dtype.str, basis.shape[1])
        users[key] += 1
        number = longest.number((*key, (users[key] - 1) // _SHARED_BY), basis)
        if len(basis) > len(longest.items[number]):
            longest.items[number] = basis
        numbers.append(number)
    arrays = {f"rows.{k}": np.ascontiguousarray(rows) for k, rows in enumerate(longest.items)}
    arrays["basis.rows"] = np.array(numbers, dtype=np.int64)
    arrays["basis.length"] = np.array([len(basis) for basis in bases], dtype=np.int64)
    return arrays


def from_arrays(
    arrays: Arrays,
    descriptions: Any,
    n_outputs: int,
    n_features: int,
    reader: ValueReader | None = None,
    n_others: int = 0,
) -> list[tuple[int, int, Term]]:
    """Read the stage, place and term of every expansion, beside other terms except trees."""
    require_kind(descriptions, list, "kernels")
    bases = _bases(arrays, descriptions, _inputs(arrays, n_features), reader)
    expansions = _expansions(arrays, bases, n_outputs)
    coefficient = require_finite(arrays, "part.coefficient", 2)
    n = len(coefficient)
    require(n > 0 and coefficient.shape[1] == n_outputs, "part.coefficient")
    # Each stage has at least one term, and each place one before it.
    most = n + len(arrays.get("stage", ())) + n_others
    numbers = require_below(arrays, "part.stage", most, n)
    places = require_below(arrays, "part.place", most, n)
    named = require_below(arrays, "part.expansion", len(expansions), n)
    every = {"part.columns": np.tile(np.array([0, n_outputs], dtype=np.int64), (n, 1))}
    columns = require_array(every | arrays, "part.columns", np.int64, 2)
    require(columns.shape == (n, 2), "part.columns")
    found = []
    for number, place, k, (first, last), factors in zip(
        numbers, places, named, columns.tolist(), coefficient, strict=True
    ):
        width = expansions[k].weights.shape[1]
        require(0 <= first < last <= n_outputs and width == last - first, "part.columns")
        found.append((number, place, Term(expansions[k], slice(first, last), factors[:width])))
    return found


def describe(kernel: Kernel, writer: ValueWriter | None = None) -> Any:
    """Describe a kernel for files; with a writer, it may be of a user-defined class."""
    if writer is not None and not is_hilboost(type(kernel)):
        return writer.write(kernel, "the kernel")
    description = to_description(kernel)
    if _is_too_deep(description):
        raise IncompatibleParts(
            f"model files support at most {_DEEPEST} nested levels in a kernel; this kernel has "
            "more. Use fewer nested kernels."
        )
    return description


def read_kernel(description: object, n_features: int, reader: ValueReader | None = None) -> Kernel:
    """Create the kernel of a description, for rows with this number of columns."""
    require(not _is_too_deep(description), "a kernel nested too deeply")
    if reader is not None and isinstance(description, dict) and "import" in description:
        kernel: Kernel = reader.part(description, Kernel)
    else:
        kernel = from_description(description)
    kernel.check(n_features)
    return kernel


def _is_too_deep(description: Any) -> bool:
    inside = [(description, 1)]
    while inside:
        value, depth = inside.pop()
        if depth > _DEEPEST:
            return True
        children = value.values() if isinstance(value, dict) else value
        if isinstance(value, dict | list):
            inside.extend((child, depth + 1) for child in children)
    return False


def _inputs(arrays: Arrays, n_features: int) -> list[FeatureMap]:
    center = require_finite(arrays, "inputs.centre", 2)
    scale = require_finite(arrays, "inputs.scale", 2)
    low, high = _bounds(arrays, center.shape)
    require(center.shape == scale.shape, "inputs.centre")
    maps = []
    for k, (columns, numbers, missing) in enumerate(_completions(arrays, len(center), n_features)):
        width = len(columns) + len(missing)
        own = [one[k, :width].copy() for one in (low, high, center, scale)]
        levels, warps = (
            tuple((j, arrays[f"{name}.{k}.{j}"]) for j in range(n) if f"{name}.{k}.{j}" in arrays)
            for name, n in (("levels", len(columns)), ("warps", width))
        )
        found = FeatureMap(columns, levels, numbers, missing, own[0], own[1], own[2], own[3])
        maps.append(replace(found, rotation=arrays.get(f"rotation.{k}"), warps=warps))
    widest = max((len(one.columns) + len(one.missing) for one in maps), default=n_features)
    require(center.shape[1] == widest, "inputs.centre")
    require(all(one.is_valid(n_features) for one in maps), "inputs.scale")
    return maps


def _completions(
    arrays: Arrays, n: int, n_features: int
) -> Iterator[tuple[Ints, Floats | None, Ints]]:
    """Read the columns of each of the inputs, the numbers of missing cells, and the indicated."""
    every = {"inputs.columns": np.tile(np.arange(n_features, dtype=np.int64), (n, 1))}
    columns = require_array(every | arrays, "inputs.columns", np.int64, 2)
    numbers, missing = np.zeros(columns.shape), np.full(columns.shape, -1, dtype=np.int64)
    if "inputs.numbers" in arrays or "inputs.missing" in arrays:
        numbers = require_finite(arrays, "inputs.numbers", 2)
        missing = require_array(arrays, "inputs.missing", np.int64, 2)
    require(numbers.shape == missing.shape == columns.shape, "inputs.numbers")
    require(len(columns) == n, "inputs.columns")
    require(bool(np.isin(missing, (-1, 0, 1)).all()), "inputs.missing")
    flagged = {"inputs.indicated": np.where(missing == 1, columns, -1)}
    indicated = require_array(flagged | arrays, "inputs.indicated", np.int64, 2)
    require(len(indicated) == n, "inputs.indicated")
    for row, own, flags, others in zip(columns, numbers, missing, indicated, strict=True):
        q, is_refused = int(np.count_nonzero(row >= 0)), bool((flags == -1).any())
        found = others[others >= 0]
        require(q + len(found) > 0, "inputs.columns")
        yield row[:q].copy(), None if is_refused else own[:q].copy(), found


def _bounds(arrays: Arrays, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Read the bounds of the inputs."""
    names = ("inputs.low", "inputs.high")
    if arrays.keys().isdisjoint(names):
        return np.full(shape, -UNBOUNDED), np.full(shape, UNBOUNDED)
    low, high = (require_finite(arrays, name, 2) for name in names)
    require(low.shape == high.shape == shape, "inputs.low")
    require(bool((low <= high).all()), "inputs.high")
    return low, high


Basis = tuple[Kernel, FeatureMap, np.ndarray]


def _bases(
    arrays: Arrays, descriptions: list[Any], maps: list[FeatureMap], reader: ValueReader | None
) -> list[Basis]:
    lengths = require_array(arrays, "basis.length", np.int64).tolist()
    n = len(lengths)
    of_rows = require_below(arrays, "basis.rows", n, n)
    of_kernel = require_below(arrays, "basis.kernel", len(descriptions), n)
    of_inputs = require_below(arrays, "basis.inputs", len(maps), n)
    widths = {k: maps[j].width for k, j in zip(of_kernel, of_inputs, strict=True)}
    require(len(widths) == len(descriptions), "basis.kernel")
    kernels = [read_kernel(one, widths[k], reader) for k, one in enumerate(descriptions)]
    require(max(Counter(of_rows).values(), default=0) <= _SHARED_BY, "basis.rows")
    rows = {k: _rows(arrays, f"rows.{k}") for k in set(of_rows)}
    tried: set[int] = set()  # evaluate each kernel once: long sums are slow
    bases: list[Basis] = []
    for k, length, kernel, own in zip(of_rows, lengths, of_kernel, of_inputs, strict=True):
        require(0 < length <= len(rows[k]), "basis.length")
        require(rows[k].shape[1] == maps[own].width, f"rows.{k}")
        if kernel not in tried:
            tried.add(kernel)
            try_kernel(kernels[kernel], rows[k][:1])
        bases.append((kernels[kernel], maps[own], rows[k][:length]))
    return bases


def _rows(arrays: Arrays, name: str) -> np.ndarray:
    rows = arrays[name]
    require(rows.dtype in (np.float32, np.float64), name)
    require(rows.ndim == 2 and len(rows) > 0, name)
    require(bool(np.isfinite(rows).all()), name)
    return rows


def try_kernel(kernel: Kernel, row: np.ndarray) -> None:
    """Evaluate one value to detect invalid parameters, such as a power that is too large."""
    with np.errstate(all="ignore"):
        value, own = kernel.block(row, row), kernel.diag(row)
    require(value.shape == (1, 1) and bool(np.isfinite(value).all()), "a kernel")
    require(own.shape == (1,) and bool(np.isfinite(own).all()), "a kernel")


def _expansions(arrays: Arrays, bases: list[Basis], n_outputs: int) -> list[KernelExpansion]:
    weights: Floats = require_finite(arrays, "expansion.weights")
    n = len(require_array(arrays, "expansion.basis", np.int64))
    expansions, begin = [], 0
    given = arrays.get("expansion.in_float64", np.zeros(n, dtype=bool))
    require(given.dtype == np.bool_ and given.shape == (n,), "expansion.in_float64")
    every = {"expansion.outputs": np.full(n, n_outputs, dtype=np.int64)}
    widths = require_below(every | arrays, "expansion.outputs", n_outputs + 1, n)
    of_bases = require_below(arrays, "expansion.basis", len(bases), n)
    for k, in_float64, width in zip(of_bases, given.tolist(), widths, strict=True):
        kernel, scaling, basis = bases[k]
        end = begin + len(basis) * width
        require(end <= len(weights), "expansion.weights")
        own = weights[begin:end].reshape(len(basis), width)
        found = KernelExpansion(kernel, scaling, basis, own, in_float64=in_float64)
        expansions.append(found)
        begin = end
    require(begin == len(weights), "expansion.weights")
    return expansions

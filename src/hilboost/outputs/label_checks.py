"""Validation of labels: rows, lists, strings and other texts, and graphs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter, counted, first_true, shown
from hilboost.core.plain_values import (
    as_floats,
    as_list,
    as_python,
    is_array_or_list,
    is_integer,
    is_pair,
)
from hilboost.tables.arrays import columns_of, n_rows, without_frame, without_mask

_NO_NUMBERS = (str, bytes, complex, np.datetime64, np.timedelta64)


def as_rows(labels: Any, what: str = "Y", width: int | None = None) -> Floats:
    """Validate labels that are rows of numbers, (n, c) float64; (n,) becomes one column."""
    table = without_mask(without_frame(labels))
    if isinstance(table, np.ndarray) and table.dtype.kind == "c":
        raise InvalidData(f"Complex data not supported: {what} must contain real numbers.")
    if (rows := as_numbers(table)) is None:
        has_sets = any(isinstance(label, set | frozenset) for label in labels)
        remedy = '; set output="label_set"' if what == "Y" and has_sets else ""
        raise InvalidData(f"{what} must contain rows of numbers{_first_odd_row(table)}{remedy}.")
    if rows.ndim == 1:
        rows = rows[:, None]
    if rows.ndim < 2 or len(rows) == 0 or rows[0].size == 0:
        raise InvalidData(
            f"{what} must contain one row of numbers per sample; got shape {rows.shape}."
        )
    rows = np.ascontiguousarray(rows.reshape(len(rows), -1))
    if (row := first_true(~np.isfinite(rows).all(axis=1))) is not None:
        raise InvalidData(
            f"{what} contains NaN or infinity in row {row}; outputs must be finite numbers. Remove "
            "or impute such rows."
        )
    if width is not None and rows.shape[1] != width:
        raise InvalidData(
            f"{what} has {counted(rows.shape[1], 'number')} per row; the model was fitted with "
            f"{width}."
        )
    return rows


def as_numbers(values: object) -> Floats | None:
    """Convert values to a float64 array; ``None`` for texts, dates and uneven rows."""
    try:
        found = np.asarray(values)
    except (TypeError, ValueError):
        return None
    kind = found.dtype.kind
    is_odd = kind == "O" and any(isinstance(value, _NO_NUMBERS) for value in found.flat)
    return None if is_odd or kind in "cUSMmV" else as_floats(found)


def in_order_of(names: Iterable[Hashable], parameter: str, given: object, what: str) -> Any:
    """Return the values of a mapping in the order of the names; other values are unchanged."""
    if not isinstance(given, Mapping):
        return given
    lacking = [name for name in names if name not in given]
    if lacking:
        raise InvalidParameter(
            f"{parameter} has no value for {what} {lacking[0]!r}; assign a positive number to each "
            f"{what}."
        )
    return [given[name] for name in names]


def _first_odd_row(table: Any) -> str:
    """Describe the first row that is not numeric or has a different length."""
    length = None
    for i, row in enumerate(table):
        if (numbers := as_numbers(row)) is None:
            return f"; row {i} is {shown(row)}"
        size = numbers.size
        length = size if length is None else length
        if size != length:
            return f"; row {i} has length {size} and row 0 has length {length}"
    return ""


def as_table(labels: Any, meaning: str, width: int | None = None, what: str = "Y") -> Floats:
    """Validate labels that are a table of ``width`` columns of numbers, (n, c) float64."""
    rows = as_rows(labels, what)
    if np.ndim(labels) != 2:
        raise InvalidData(
            f"each row of {what} must contain {meaning}, so its shape must be (n, c); got shape "
            f"{np.shape(labels)}."
        )
    if width is not None and rows.shape[1] != width:
        raise InvalidData(
            f"row 0 of {what} has {counted(rows.shape[1], 'number')}; the model was fitted with "
            f"{width}."
        )
    return rows


def as_objects(labels: Any, meaning: str, what: str = "Y") -> list[Any]:
    """Convert labels that are single objects to a list."""
    refuse_no_list(labels, meaning, what)
    if columns_of(labels) is not None:
        raise InvalidData(f"{what} must be a list of {meaning}, one per row; got a table.")
    return list(labels.tolist() if hasattr(labels, "tolist") else labels)


def refuse_no_list(labels: object, meaning: str, what: str = "Y") -> None:
    """Reject empty lists and objects that are not lists."""
    if not count_rows(labels, meaning, what):
        raise InvalidData(f"{what} is empty; it must be a nonempty list of {meaning}.")


def count_rows(labels: object, meaning: str, what: str = "Y") -> int:
    """Count the labels."""
    n = n_rows(labels)
    if isinstance(labels, str | bytes | Mapping | Set) or n is None:
        raise InvalidData(f"{what} must be a list of {meaning}, one per row; got {labels!r:.60}.")
    return n


def refuse_rows(bad: NDArray[np.bool_], sentence: Callable[[int], str]) -> None:
    """Raise an error about the first row that is ``bad``, (n,), with the message ``sentence``."""
    if (row := first_true(bad)) is not None:
        raise InvalidData(sentence(row))


def in_words(numbers: Sequence[Any] | NDArray[Any]) -> str:
    """Format a row for an error message, truncated if long."""
    row = np.asarray(numbers).ravel()
    shown = ", ".join(f"{number:g}" for number in row[:8])
    return f"({shown}{', …' if len(row) > 8 else ''})"


def check_choice(name: str, value: object, known: Sequence[str]) -> None:
    """Reject a parameter value that is not one of the known names."""
    if value not in known:
        raise InvalidParameter(
            f"{name} must be {' or '.join(map(repr, known))}; got {shown(value)}."
        )


_NUMBERS = frozenset({int, float, bool})


def as_strings(labels: object, what: str = "Y", of_tokens: bool | None = None) -> list[Any]:
    """Validate labels that are all strings, or all lists or tuples of tokens.

    ``of_tokens`` tells which of them are required; ``None`` follows the first label.
    """
    objects = as_objects(labels, "strings", what)
    if of_tokens is None:
        of_tokens = is_sequence(objects[0])
    if of_tokens:
        return [_tokens(i, what, sequence) for i, sequence in enumerate(objects)]
    for i, string in enumerate(objects):
        if not isinstance(string, str):
            raise _refused(i, what, string, "each output must be a string.")
    return objects


def is_sequence(label: object) -> TypeGuard[Sequence[Any]]:
    """Whether a label is a list, a tuple or an array (n,)."""
    return is_array_or_list(label) and getattr(label, "ndim", 1) == 1


def _tokens(i: int, what: str, sequence: Any) -> tuple[Any, ...]:
    if not is_sequence(sequence):
        raise _refused(i, what, sequence, "each output must be a list or tuple of tokens.")
    return as_tokens(sequence, f"row {i} of {what} contains the token", "tokens")


def as_tokens(sequence: Iterable[Any], where: str, noun: str) -> tuple[Any, ...]:
    """Validate tokens, which are hashed; scalars of NumPy become numbers and strings."""
    tokens = tuple(map(as_python, sequence))
    for token in tokens:
        try:
            hash(token)
            same = bool(token == token)  # NaN differs from itself
        except (TypeError, ValueError):
            same = False
        if not same:
            raise InvalidData(
                f"{where} {token!r:.60} ({type(token).__name__}); {noun} must be hashable and not "
                "NaN, such as words or integers."
            )
    return tokens


def _refused(i: int, what: str, label: object, rule: str) -> InvalidData:
    return InvalidData(f"row {i} of {what} is {label!r:.60} ({type(label).__name__}); {rule}")


def in_order(items: Iterable[Any]) -> list[Any]:  # in natural order, or else by type and text
    """Sort strings, tokens or tuples of tokens, of types that may not be comparable."""
    found = list(items)
    kinds = {type(token) for item in found for token in as_list(item)}
    if kinds == {str} or kinds <= _NUMBERS:
        return sorted(found)
    return sorted(found, key=lambda item: (type(item).__name__, repr(item)))


Graph = tuple[tuple[Any, ...], tuple[tuple[int, int], ...]]
"""Labels of the nodes, and sorted edges ``(i, j)`` with ``i < j``."""

_EXAMPLE = "(['C', 'O'], [(0, 1)])"


def as_graphs(labels: object, what: str = "Y") -> list[Graph]:  # list of n (tuple, tuple)
    """Validate graphs, which may be networkx's, and sort their edges."""
    objects = as_objects(labels, "graphs", what)
    return [_as_graph(label, f"row {i} of {what}") for i, label in enumerate(objects)]


def _as_graph(label: object, where: str) -> Graph:
    networkx = sys.modules.get("networkx")
    if networkx is not None and isinstance(label, networkx.Graph):
        label = _pair_of(label, where)
    if not is_pair(label) or not is_sequence(label[0]):
        raise InvalidData(
            f"{where} is {label!r:.60} ({type(label).__name__}); each output must be a graph: a "
            f"pair of a list of node labels and a list of edges, such as {_EXAMPLE}."
        )
    nodes = as_tokens(label[0], f"{where} contains the node label", "node labels")
    if not isinstance(label[1], list | tuple | Set | np.ndarray):
        raise InvalidData(
            f"the edges of {where} are {label[1]!r:.60} ({type(label[1]).__name__}); they must be "
            f"a list of pairs of node indices, as in {_EXAMPLE}."
        )
    edges = set()
    for given in label[1]:
        edge = _as_edge(given, len(nodes), where)
        if edge in edges:
            raise InvalidData(
                f"the edge {edge} occurs twice in {where}; list each undirected edge once."
            )
        edges.add(edge)
    return nodes, tuple(sorted(edges))


def _as_edge(given: object, n_nodes: int, where: str) -> tuple[int, int]:
    ends = list(given) if is_sequence(given) else None
    if not is_pair(ends) or not all(map(is_integer, ends)):
        raise InvalidData(
            f"an edge of {where} is {given!r:.60}; each edge must be a pair of node indices."
        )
    i, j = sorted(map(int, ends))
    if i < 0 or j >= n_nodes:
        raise InvalidData(
            f"the edge {(i, j)} of {where} has an end outside its {n_nodes} nodes; number the "
            "nodes from 0."
        )
    if i == j:
        raise InvalidData(
            f"the edge {(i, j)} of {where} joins a node to itself; remove such edges."
        )
    return i, j


def _pair_of(graph: Any, where: str) -> tuple[list[Any], list[tuple[int, int]]]:
    """Convert a networkx graph."""
    if graph.is_directed() or graph.is_multigraph():
        raise InvalidData(
            f"{where} is a networkx {type(graph).__name__}; convert it to an undirected graph with "
            "networkx.Graph(graph)."
        )
    number = {node: i for i, node in enumerate(graph.nodes)}
    labels = [attributes.get("label") for _, attributes in graph.nodes(data=True)]
    return labels, [(number[a], number[b]) for a, b in graph.edges]

"""Checks of the choice among candidate labels, and of the errors about labels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.labels import take_labels
from hilboost.core.output_space import Choice, Embedding
from hilboost.testing.contract import ensure_close, ensure_raises, ensure_same_labels

_NOT_A_LIST = (5, "text", {1, 2}, {"a": 1}, object(), np.array(3.0))


def ensure_nearest(embedding: Embedding, raw: Floats, candidates: object, decoded: object) -> None:
    """Check that every decoding method chooses the nearest candidate.

    ``raw``: (n, r) float64: points to decode. ``decoded``: the candidates in the form returned by
    ``decode``.
    """
    norms, products = embedding.norms(candidates), raw @ embedding.encode(candidates).T
    lengths = _lengths(norms)
    for way in embedding.ways:
        found = embedding.decode(raw, way, Choice(candidates))
        if not way.endswith("cosine"):
            ensure_same_labels(
                found,
                take_labels(decoded, (norms - 2 * products).argmin(axis=1)),
                "The nearest candidate must be chosen.",
            )
            continue
        ensure_close(
            (embedding.encode(found) * raw).sum(axis=1) / _lengths(embedding.norms(found)),
            (products / lengths).max(axis=1),
            "The candidate at the smallest angle must be chosen.",
            rtol=1e-9,
            atol=1e-9,
        )
    numbers = np.arange(len(raw))[::-1]
    ensure_same_labels(
        embedding.decode(raw, embedding.ways[0], Choice(candidates, [[i] for i in numbers])),
        take_labels(decoded, numbers),
        "The chosen candidate must be allowed for the row.",
    )


def ensure_invalid_candidates_are_refused(embedding: Embedding, raw: Floats, labels: Any) -> None:
    """Check that candidates that cannot be chosen from raise clear errors.

    ``raw``: (n, r) float64: points to decode. ``labels``: valid labels, at least 4.
    """
    n = len(raw)
    mixed = [*list(labels)[:3], None, *list(labels)[4:]]
    refused = [
        (Choice(labels[:0]), "candidates is empty; pass at least one"),
        (
            Choice(labels, [[0], [1], [], *([[0]] * (n - 3))]),
            r"allowed\[2\] must contain the index of at least one candidate",
        ),
        (Choice(labels, [[n]] * n), rf"allowed\[0\] contains index {n}; candidates have"),
        *((Choice(odd), "candidates must be a list of labels, one per row") for odd in _NOT_A_LIST),
        (Choice(mixed), "row 3"),
    ]
    for way in embedding.ways:
        for choice, pattern in refused:
            ensure_raises(
                InvalidData,
                pattern,
                partial(embedding.decode, raw, way, choice),
                f"Candidates {choice.labels!r:.60} must be rejected.",
            )


def _lengths(norms: Floats) -> Floats:
    """Square roots of the squared norms; 1 for zero."""
    return np.sqrt(np.where(norms > 0, norms, 1.0))


_OTHER_TYPES = (None, np.nan, {"a": 1}, object(), b"bytes")

Use = Callable[[Any], Any]


def ensure_other_labels_are_refused(fit: Use, encode: Use, labels: Any) -> None:
    """Check that an invalid label raises an error that names its row.

    ``fit``: methods that take labels. ``encode``: methods that take labels.
    """
    for odd in _OTHER_TYPES:
        mixed = [*list(labels)[:3], odd, *list(labels)[4:]]
        for use in (fit, encode):
            ensure_raises(
                InvalidData,
                "row 3",
                partial(use, mixed),
                f"The label {odd!r:.40} in row 3 must be rejected.",
            )


def ensure_no_labels_are_refused(fit: Use, encode: Use) -> None:
    """Check that an empty list raises an error.

    ``fit``: methods that take labels. ``encode``: methods that take labels.
    """
    for use in (fit, encode):
        ensure_raises(
            InvalidData,
            "Y is empty|must contain",
            partial(use, []),
            "An empty list must be rejected.",
        )


def ensure_unknown_ways_are_refused(embedding: Embedding, raw: Floats, labels: object) -> None:
    """Check that an unknown decoding method raises an error, with and without candidates.

    ``raw``: (n, r) float64: points to decode. ``labels``: valid candidates.
    """
    for choice in (None, Choice(labels)):
        ensure_raises(
            InvalidParameter,
            "decode='no-such-way' is not known.",
            partial(embedding.decode, raw, "no-such-way", choice),
            "An unknown decoding method must be rejected.",
        )

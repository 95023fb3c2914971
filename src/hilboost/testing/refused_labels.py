"""Checks of the errors of output spaces about labels and decoding methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.output_space import Choice, Embedding
from hilboost.testing.assertions import ensure_raises

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


def ensure_unknown_ways_are_refused(embedding: Embedding, raw: Floats, labels: Any) -> None:
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

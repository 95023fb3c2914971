"""Contract tests of the choice among candidate labels, and of the errors about labels."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.labels import take_labels
from hilboost.core.output_space import Choice, Embedding
from hilboost.testing.contract import ensure_close, ensure_raises, ensure_same_labels
from hilboost.testing.models import ModelContract

_NOT_A_LIST = (5, "text", {1, 2}, {"a": 1}, object(), np.array(3.0))
_OTHER_TYPES = (None, np.nan, {"a": 1}, object(), b"bytes")


class LabelContract(ModelContract):
    """Checks of the labels and candidates of an output space."""

    def settled(self, labels: object) -> Any:
        """Convert labels to the form returned by ``decode``."""
        raise NotImplementedError

    def draw(self, seed: int = 0) -> Any:
        """Draw labels with a fixed seed."""
        raise NotImplementedError

    def fitted(self) -> tuple[Embedding, Any, Floats]:
        """Return an embedding, its training labels, and points near the labels' points."""
        raise NotImplementedError

    def test_candidates_are_chosen_by_distance(self) -> None:
        """The nearest of all candidates, or of those allowed for the row, is chosen."""
        embedding, _, raw = self.fitted()
        candidates = self.draw(1)
        decoded = self.settled(candidates)
        norms, products = embedding.norms(candidates), raw @ embedding.encode(candidates).T
        for way in embedding.ways:
            found = embedding.decode(raw, way, Choice(candidates))
            if not way.endswith("cosine"):
                nearest = take_labels(decoded, (norms - 2 * products).argmin(axis=1))
                ensure_same_labels(found, nearest, "The nearest candidate must be chosen.")
                continue
            along = (embedding.encode(found) * raw).sum(axis=1) / _lengths(embedding.norms(found))
            said = "The candidate at the smallest angle must be chosen."
            ensure_close(along, (products / _lengths(norms)).max(axis=1), said, 1e-9, 1e-9)
        numbers = np.arange(len(raw))[::-1]
        only = Choice(candidates, [[i] for i in numbers])
        found = embedding.decode(raw, embedding.ways[0], only)
        said = "The chosen candidate must be allowed for the row."
        ensure_same_labels(found, take_labels(decoded, numbers), said)

    def test_candidates_that_cannot_be_chosen_from_are_refused(self) -> None:
        """Empty lists, invalid indices, invalid types and invalid labels raise errors."""
        embedding, labels, raw = self.fitted()
        n = len(raw)
        some = [[0], [1], [], *([[0]] * (n - 3))]
        lacks = "must contain the index of at least one candidate"
        refused = [
            (Choice(labels[:0]), "candidates is empty; pass at least one"),
            (Choice(labels, some), rf"allowed\[2\] {lacks}"),
            (Choice(labels, [[n]] * n), rf"allowed\[0\] contains index {n}; candidates have"),
            (Choice(_with_odd(labels, None)), "row 3"),
        ]
        for odd in _NOT_A_LIST:
            refused.append((Choice(odd), "candidates must be a list of labels, one per row"))
        for way in embedding.ways:
            for choice, pattern in refused:
                said = f"Candidates {choice.labels!r:.60} must be rejected."
                decode = partial(embedding.decode, raw, way, choice)
                ensure_raises(InvalidData, pattern, decode, said)

    def test_unknown_ways_are_refused(self) -> None:
        """An unknown decoding method raises an error, with and without candidates."""
        embedding, labels, raw = self.fitted()
        for choice in (None, Choice(labels)):
            decode = partial(embedding.decode, raw, "no-such-way", choice)
            said = "An unknown decoding method must be rejected."
            ensure_raises(InvalidParameter, "decode='no-such-way' is not known.", decode, said)

    def test_labels_of_another_type_are_refused(self) -> None:
        """Invalid labels raise an error that names the row, in ``fit`` and in ``encode``."""
        embedding, labels, _ = self.fitted()
        for odd in _OTHER_TYPES:
            for use in (self.make().fit, embedding.encode):
                said = f"The label {odd!r:.40} in row 3 must be rejected."
                ensure_raises(InvalidData, "row 3", partial(use, _with_odd(labels, odd)), said)

    def test_no_rows_are_refused(self) -> None:
        """An empty list raises an error, in ``fit`` and in ``encode``."""
        embedding, _, _ = self.fitted()
        for use in (self.make().fit, embedding.encode):
            said = "An empty list must be rejected."
            ensure_raises(InvalidData, "Y is empty|must contain", partial(use, []), said)


def _with_odd(labels: Any, odd: object) -> list[Any]:
    """Replace the label in row 3."""
    return [*list(labels)[:3], odd, *list(labels)[4:]]


def _lengths(norms: Floats) -> Floats:
    """Square roots of the squared norms; 1 for zero."""
    return np.sqrt(np.where(norms > 0, norms, 1.0))

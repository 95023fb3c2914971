"""Bases of embeddings that keep the training labels, and choose predictions among labels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

from hilboost.core.dtypes import Floats
from hilboost.core.output_space import Choice, Embedding
from hilboost.outputs.preimage import CANDIDATE_WAYS, Candidates, decode

Measure = Callable[[Any, Any], Floats]


class ChoosingEmbedding(Embedding):
    """Base class of embeddings that keep the training labels, and choose among labels.

    Attributes
    ----------
    training : (n, …) array or list of n labels
        The training labels, as :meth:`checked` returns them.
    """

    training: Any

    @abstractmethod
    def checked(self, labels: object, what: str = "Y") -> Any:
        """Validate labels and convert them to the form in which ``decode`` returns labels.

        Parameters
        ----------
        labels : sequence of n labels
        what : str
            Name of the labels in messages: ``"Y"`` or ``"candidates"``.

        Returns
        -------
        (n, …) array or list of n labels

        Raises
        ------
        InvalidData
            If a label is invalid.  The message names the row and ``what``.
        """

    @abstractmethod
    def points(self, labels: Any) -> Floats:
        """Map checked labels to points ``φ(y)``.

        Parameters
        ----------
        labels : (n, …) array or list of n labels
            As :meth:`checked` returns them.

        Returns
        -------
        (n, r) float64
        """

    def _on_checked(self, measure: Measure) -> Measure:
        """Convert a measure of checked labels to one of labels."""
        return lambda labels, predicted: measure(self.checked(labels), self.checked(predicted))

    def _on_points(self, measure: Measure) -> Measure:
        """Convert a measure of points to one of labels."""
        return lambda labels, predicted: measure(self.encode(labels), self.encode(predicted))

    def encode(self, labels: object) -> Floats:
        """Map labels to points; see :class:`~hilboost.core.output_space.Embedding`."""
        return self.points(self.checked(labels))

    def decode(self, raw: Floats, way: str, candidates: Choice | None = None) -> Any:
        """Map points to labels; see :class:`~hilboost.core.output_space.Embedding`."""
        formula = self._formula(way)
        found = decode(self, raw, way, candidates, lambda: self._own, self._given, formula)
        return self._as_given(found)

    def norms(self, labels: object) -> Floats:
        """Kernel values ``k(y, y)``, (n,); see :class:`~hilboost.core.output_space.Embedding`."""
        return self._candidates(self.checked(labels)).norms

    def training_labels(self) -> Any:
        """Return the training labels."""
        return self._as_given(self.training)

    def _as_given(self, labels: Any) -> Any:
        """Convert checked labels to the form in which users pass labels."""
        return labels

    def _formula(self, way: str) -> Callable[[Floats], Any] | None:
        """The function from points to labels of a decoding method that needs no candidates."""
        return None

    def _candidates(self, labels: Any) -> Candidates:
        """Checked labels with their points and norms, which may count what no point contains."""
        return Candidates.of(labels, self.points(labels))

    @cached_property
    def _own(self) -> Candidates:
        return self._candidates(self.training)

    def _given(self, labels: object) -> Candidates:
        return self._candidates(self.checked(labels, "candidates"))


class ExactEmbedding(ChoosingEmbedding):
    """Base class of embeddings with a formula for points and a formula for exact pre-images.

    Attributes
    ----------
    training : (n, …) array or list of n labels
        The training labels, as :meth:`checked` returns them.
    """

    ways: ClassVar[tuple[str, ...]] = ("exact", *CANDIDATE_WAYS)

    @abstractmethod
    def exact(self, raw: Floats) -> Any:
        """Find the label whose point is nearest to each predicted point.

        Parameters
        ----------
        raw : (n, r) float64

        Returns
        -------
        (n, …) array or list of n labels
        """

    def labels_of(self, codes: Floats) -> Any:
        """Return the labels at these points."""
        return self._as_given(self.exact(codes))

    def _formula(self, way: str) -> Callable[[Floats], Any]:
        return self.exact

"""Base of embeddings whose points and exact pre-images are functions of single labels."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar

from hilboost.core.dtypes import Floats
from hilboost.core.output_space import Choice, Embedding
from hilboost.outputs.preimage import CANDIDATE_WAYS, Candidates, decode


class ExactEmbedding(Embedding):
    """Base class of embeddings with a formula for points and a formula for exact pre-images.

    Attributes
    ----------
    training : (n, …) array or list of n labels
        The training labels, as :meth:`checked` returns them.
    """

    training: Any
    ways: ClassVar[tuple[str, ...]] = ("exact", *CANDIDATE_WAYS)

    @abstractmethod
    def checked(self, labels: Any, what: str = "Y") -> Any:
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

    def encode(self, labels: Any) -> Floats:
        """Map labels to points; see :class:`~hilboost.core.output_space.Embedding`."""
        return self.points(self.checked(labels))

    def decode(self, raw: Floats, way: str, candidates: Choice | None = None) -> Any:
        """Map points to labels; see :class:`~hilboost.core.output_space.Embedding`."""
        return decode(self, raw, way, candidates, lambda: self._own, self._given, self.exact)

    def training_labels(self) -> Any:
        """Return the training labels."""
        return self.training

    def labels_of(self, codes: Floats) -> Any:
        """Return the labels at these points."""
        return self.exact(codes)

    @cached_property
    def _own(self) -> Candidates:
        return Candidates.of(self.training, self.points(self.training))

    def _given(self, labels: Any) -> Candidates:
        own = self.checked(labels, "candidates")
        return Candidates.of(own, self.points(own))

"""Interfaces of output spaces, which map labels to points in a Hilbert space and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats
from hilboost.core.exchange import Exchange
from hilboost.core.labels import take_labels
from hilboost.core.metric import OutputMetric
from hilboost.core.records import without_caches

ShortNames = Mapping[str, Mapping[str, Any]]
"""Short names for users, each with the parameters that it sets."""


class OutputSpace(ABC):
    """Base class of output spaces: types of labels and their maps to a Hilbert space.

    An output space contains only parameters.  :meth:`fit` returns an :class:`Embedding`, which
    contains everything that depends on the training labels.
    """

    in_files: ClassVar[bool] = False
    """Whether model files store the class name and the parameters.

    Only for built-in output spaces.  Each class has to declare it; it is not inherited.
    """

    short_names: ClassVar[ShortNames] = {}
    """Short names for users, such as ``"ranking"``, each with the parameters that it sets."""

    predicts_rows: ClassVar[bool] = False
    """Whether predictions may be numbers of training rows, so that none may be left out."""

    __getstate__ = without_caches

    @abstractmethod
    def fit(self, labels: object) -> Embedding:
        """Validate the training labels and fit the embedding.

        Parameters
        ----------
        labels : sequence of n labels

        Returns
        -------
        Embedding

        Raises
        ------
        InvalidData
            If a label is invalid.  The message names the row.
        InvalidParameter
            If a parameter of the output space is invalid, in general or for these labels.
        """

    def fit_among(self, labels: object, exchange: Exchange) -> Embedding:
        """Fit the embedding as :meth:`fit` does, together with workers that have the same labels.

        Override this method to divide the work among them.

        Parameters
        ----------
        labels : sequence of n labels
        exchange : Exchange

        Returns
        -------
        Embedding
            The same for every worker.
        """
        return self.fit(labels)

    def take_rows(self, labels: object, rows: NDArray[np.int64]) -> Any:
        """Select training labels by position: rows of arrays and tables, items of lists.

        Override this method if the training labels are not stored by row, as in a Gram matrix.

        Parameters
        ----------
        labels : sequence of n labels
        rows : (m,) int64
            Positions of the selected labels.

        Returns
        -------
        sequence of m labels
        """
        return take_labels(labels, rows)


class Embedding(ABC):
    """Base class of fitted embeddings, which map labels to points in ``H = R^r`` and back."""

    ways: ClassVar[tuple[str, ...]]
    """Names of the decoding methods; the first is the default."""

    in_files: ClassVar[bool] = False
    """Whether model files store the class name and the constructor arguments.

    Only for built-in embeddings, whose constructors must reject invalid arguments.  Each class has
    to declare it; it is not inherited.
    """

    file_name: ClassVar[str | None] = None
    """The name of its layout in model files, for embeddings that files hold as arrays.

    A derived class does not inherit it.
    """

    label_kind: ClassVar[Literal["objects", "sets", "ranks", "samples", "rows", "texts"]] = (
        "objects"
    )
    """What a label is, as reports show it: any object or array, a set of names, the ranks of
    items, the sample of a distribution, the number of a training row, or an object that is shown as
    text."""

    __getstate__ = without_caches

    def has_shape(self, n_outputs: int) -> bool:
        """Return whether points have this number of dimensions.

        Used to validate embeddings loaded from files.

        Parameters
        ----------
        n_outputs : int
            Number of dimensions r.

        Returns
        -------
        bool
        """
        return True

    @abstractmethod
    def encode(self, labels: object) -> Floats:
        """Map labels to points ``φ(y)``.

        Parameters
        ----------
        labels : sequence of n labels

        Returns
        -------
        (n, r) float64

        Raises
        ------
        InvalidData
            If a label is invalid.  The message names the row.
        """

    @abstractmethod
    def decode(self, raw: Floats, way: str, candidates: Choice | None = None) -> Any:
        """Map points to labels.

        Parameters
        ----------
        raw : (n, r) float64
        way : str
            Decoding method, one of :attr:`ways`.
        candidates : Choice, optional
            Labels to choose from.

        Returns
        -------
        (n, …) array or list of n labels

        Raises
        ------
        InvalidParameter
            If the decoding method is unknown.
        InvalidData
            If a candidate is not a valid label.
        """

    def encode_training(self, labels: object) -> Floats:
        """Map the training labels to points; more accurate than :meth:`encode` in some spaces.

        Parameters
        ----------
        labels : sequence of n labels
            The training labels.

        Returns
        -------
        (n, r) float64
        """
        return self.encode(labels)

    def norms(self, labels: object) -> Floats:
        """Return ``k(y, y) = |φ(y)|²``, including the part of ``H`` that ``encode`` omits.

        Parameters
        ----------
        labels : sequence of n labels

        Returns
        -------
        (n,) float64
        """
        codes = self.encode(labels)
        return np.einsum("ij,ij->i", codes, codes)

    def training_norms(self, labels: object) -> Floats:
        """``k(y, y)`` of the training labels, which may be given as a Gram matrix.

        Parameters
        ----------
        labels : sequence of n labels
            The training labels.

        Returns
        -------
        (n,) float64
        """
        return self.norms(labels)

    def products(self, labels: object, others: object) -> Floats | None:
        """``k(y_i, y'_i)`` of corresponding labels, which an output kernel computes exactly.

        Parameters
        ----------
        labels, others : sequence of n labels

        Returns
        -------
        (n,) float64 or None
            ``None``, the default, where they follow from :meth:`encode` and :meth:`norms`.
        """
        return None

    def spanning(self) -> NDArray[np.int64] | None:
        """Training rows whose points span the points of all rows.

        Returns
        -------
        (m,) int64 or None
            ``None``, the default, where they are not known.
        """
        return None

    def training_labels(self) -> Any | None:
        """Training labels to choose from, in the form in which ``decode`` returns labels.

        Returns
        -------
        (c, …) array or list of c labels, or None
            ``None``, the default, where it keeps none.
        """
        return None

    def metrics(self) -> Mapping[str, OutputMetric]:
        """Measures by which users may compare predicted labels with the true ones.

        Returns
        -------
        mapping of str to OutputMetric
            Empty by default.
        """
        return {}

    def labels_of(self, codes: Floats) -> Any | None:
        """Recover labels from their points, where points determine labels.

        Parameters
        ----------
        codes : (n, r) float64
            Points of labels.

        Returns
        -------
        (n, …) array or list of n labels, or None
            ``None``, the default, where points do not determine labels.
        """
        return None

    def settled(self, labels: object) -> Any:
        """Convert labels to the form in which ``decode`` returns labels, for comparisons.

        Parameters
        ----------
        labels : sequence of n labels

        Returns
        -------
        sequence of n labels
            ``labels``, the default, where they have this form or are not compared as a whole.
        """
        return labels


@dataclass(frozen=True)
class Choice:
    """Candidate labels from which predictions are chosen.

    Attributes
    ----------
    labels : sequence
    allowed : sequence of sequences of int, or None
        For each row, the positions of its candidates in ``labels``; ``None`` means all labels.
    """

    labels: Any
    allowed: Sequence[Sequence[int]] | None = None

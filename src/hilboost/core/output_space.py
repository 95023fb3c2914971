"""The contracts of output spaces: labels of any kind as points of a Hilbert space, and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dtypes import Floats

ShortNames = Mapping[str, Mapping[str, Any]]
"""Names, each with the parameters that it stands for."""


class OutputSpace(ABC):
    """A kind of labels: what they are, and how they become points of a Hilbert space.

    An object of parameters; what it learns from training labels is an :class:`Embedding`.  Spaces
    of the library declare the first two attributes in their own class.
    """

    in_files: ClassVar[bool] = False
    """Whether model files hold it as the name of its class and its parameters."""

    short_names: ClassVar[ShortNames] = {}
    """Names for users."""

    predicts_rows: ClassVar[bool] = False
    """Whether predictions may be numbers of training rows, so that none may be left out."""

    @abstractmethod
    def fit(self, labels: Any) -> Embedding:
        """Check training labels and learn from them what encoding and decoding need.

        Parameters
        ----------
        labels : sequence of n labels

        Returns
        -------
        Embedding

        Raises
        ------
        InvalidData
            Labels of another kind; the message says which row.
        InvalidParameter
            A parameter of the space that these labels, or any, do not go with.
        """

    def take_rows(self, labels: Any, rows: NDArray[np.int64]) -> Any:
        """Some training labels, by their positions: rows of arrays and tables, items of lists.

        A space whose training labels are no rows of their own, such as a Gram matrix, says here
        what :meth:`fit` takes for these rows alone.

        Parameters
        ----------
        labels : sequence of n labels
        rows : (m,) int64

        Returns
        -------
        sequence of m labels
        """
        return rows_of(labels, rows)


def rows_of(labels: Any, rows: NDArray[np.int64]) -> Any:
    """Rows of arrays, tables and sparse matrices; items of lists.

    Parameters
    ----------
    labels : sequence of n labels
    rows : (m,) int64

    Returns
    -------
    sequence of m labels
    """
    if hasattr(labels, "iloc"):
        return labels.iloc[rows]
    if hasattr(labels, "tocsr"):
        return labels.tocsr()[rows]
    return labels[rows] if hasattr(labels, "shape") else [labels[i] for i in rows]


class Embedding(ABC):
    """Labels as points of ``H = R^r``, and back (the pre-image)."""

    ways: ClassVar[tuple[str, ...]]
    """Names of the ways to decode, the usual one first."""

    in_files: ClassVar[bool] = False
    """Whether model files hold it as the name of its class and the parameters of its constructor.

    An embedding of the library declares it in its own class, whose constructor refuses what cannot
    be.
    """

    file_name: ClassVar[str | None] = None
    """The name of its layout in model files, for embeddings that files hold as arrays.

    A derived class does not inherit it.
    """

    label_kind: ClassVar[Literal["objects", "sets", "ranks", "samples", "rows"]] = "objects"
    """What a label is, as reports show it: any object or array, a set of names, the ranks of
    items, the sample of a distribution, or the number of a training row."""

    def has_shape(self, n_outputs: int) -> bool:
        """Whether its points have so many dimensions, for those that files hold.

        Parameters
        ----------
        n_outputs : int

        Returns
        -------
        bool
        """
        return True

    @abstractmethod
    def encode(self, labels: Any) -> Floats:
        """Points ``φ(y)`` of labels.

        Parameters
        ----------
        labels : sequence of n labels

        Returns
        -------
        (n, r) float64

        Raises
        ------
        InvalidData
            Labels of another kind; the message says which row.
        """

    @abstractmethod
    def decode(self, raw: Floats, way: str, candidates: Choice | None = None) -> Any:
        """Labels for points.

        Parameters
        ----------
        raw : (n, r) float64
        way : str
            One of the :attr:`ways`.
        candidates : Choice, optional
            Labels to choose from; these overrule ``way``.

        Returns
        -------
        (n, …) array or list of n labels

        Raises
        ------
        InvalidParameter
            No such way.
        InvalidData
            Candidates of another kind.
        """

    def encode_training(self, labels: Any) -> Floats:
        """Points of the labels that it was fitted to, where these are known more exactly.

        Parameters
        ----------
        labels : sequence of n labels
            The training labels.

        Returns
        -------
        (n, r) float64
        """
        return self.encode(labels)

    def norms(self, labels: Any) -> Floats:
        """``k(y, y) = |φ(y)|²``, with the part of ``H`` that ``encode`` leaves out.

        Parameters
        ----------
        labels : sequence of n labels

        Returns
        -------
        (n,) float64
        """
        codes = self.encode(labels)
        return np.einsum("ij,ij->i", codes, codes)

    def products(self, labels: Any, others: Any) -> Floats | None:
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
        """Training rows whose points span those of all rows.

        Returns
        -------
        (m,) int64 or None
            ``None``, the default, where they are not known.
        """
        return None

    def __getstate__(self) -> dict[str, Any]:
        """Without what is computed again when it is asked for."""
        return {
            name: value
            for name, value in self.__dict__.items()
            if not isinstance(getattr(type(self), name, None), cached_property)
        }


@dataclass(frozen=True)
class Choice:
    """Labels that predictions are chosen from.

    Attributes
    ----------
    labels : sequence
    allowed : sequence of sequences of int, or None
        For every row the numbers of the labels it may take; ``None`` is all.
    """

    labels: Any
    allowed: Sequence[Sequence[int]] | None = None

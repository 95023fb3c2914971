"""Encoding of labels as targets: numbers, class codes, or points of an output space."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_sample_weight

from hilboost.core.dtypes import Floats
from hilboost.core.errors import FitWarning, InvalidData, counted, first_few, shown, warn_caller
from hilboost.core.exchange import Exchange
from hilboost.core.loss import Loss
from hilboost.core.output_space import Embedding, OutputSpace
from hilboost.core.target import Target
from hilboost.encoders.encoding import class_indicators, known_numbers
from hilboost.reductions.rows import distinct
from hilboost.reductions.sums import masses_of_groups, total_weight
from hilboost.tables.arrays import frame_columns
from hilboost.tables.bounds import check_bounds, holds_bounds, refuse_bounds
from hilboost.validation.targets import (
    as_sequence,
    check_classes,
    check_length,
    check_regression_target,
)
from hilboost.validation.weights import check_class_weight

if TYPE_CHECKING:
    from hilboost.model.survival import SurvivalCodec

_ROUNDING = 1e-9  # of squared lengths, between a kernel and its factor


class TargetCodec(ABC):
    """Base class of fitted label encodings."""

    kind: ClassVar[Literal["numbers", "classes", "structured", "survival"]]

    @property
    def n_classes(self) -> int | None:
        """Number of classes; ``None`` for other targets."""
        return None

    def of_numbers(self) -> NumberCodec:
        """Return the codec itself if the targets are numbers."""
        raise InvalidData("the model has no numeric targets.")

    def of_classes(self) -> ClassCodec:
        """Return the codec itself if the targets are classes."""
        raise InvalidData("the model has no classes: its targets are not class labels.")

    def of_structures(self) -> OutputCodec:
        """Return the codec itself if the targets are points of an output space."""
        raise InvalidData("the model has no output space: its targets are numbers or classes.")

    def of_survival(self) -> SurvivalCodec:
        """Return the codec itself if the targets are survival times."""
        raise InvalidData("the model has no survival times.")

    def n_outputs(self, loss: Loss) -> int | None:
        """Return the number of outputs of a built-in loss; ``None`` if the labels decide."""
        return None

    @abstractmethod
    def encode(self, y: object, n: int, allow_missing: bool = False) -> Floats:  # (n, c) float64
        """Encode labels, (n, c); ``allow_missing`` accepts NaN for some of several targets."""

    def encode_rows(self, y: object, n: int, allow_missing: bool = False) -> Floats:
        """Encode labels of rows of a fit, which may be bounds of numbers, (n, c)."""
        return self.encode(y, n, allow_missing)

    def has_bounds(self, target: Target) -> bool:
        """Whether the encoded target of a fit holds bounds of numbers."""
        return False

    def united(self, other: TargetCodec) -> TargetCodec:
        """Return the codec of the labels of two tables, which are of the same kind."""
        raise InvalidData("labels in an output space cannot be divided among workers.")

    def recoded(self, y: Floats, codec: TargetCodec) -> Floats:
        """Return what another codec, which was united into this one, has encoded, (n, c)."""
        return y

    @property
    def width(self) -> int:
        """Number of columns of an encoded target."""
        return 1

    def compact(self, y: Floats) -> NDArray[Any]:  # (n, c) array
        """Return encoded labels (n, c) in less memory, if the numbers remain the same."""
        return y

    def strata(self, target: Target) -> NDArray[Any] | None:  # (n,) array or None
        """Return strata whose proportions a split of the rows preserves."""
        return None

    def averaged(self, target: Target, rows: NDArray[np.uint32] | None = None) -> Target:
        """Return the values (n, q) of each row whose means encode the levels of a category."""
        return known_numbers(target, rows)

    def has_one_class(self, target: Target) -> bool:
        """Whether all training targets are of one class; issues a warning if they are."""
        return False


@dataclass(frozen=True)
class NumberCodec(TargetCodec):
    """Codec of numeric targets, one or several per row."""

    kind = "numbers"
    n_targets: int
    flat: bool  # whether ``y`` was one-dimensional
    names: tuple[str, ...] | None = None  # columns of a data frame of several targets

    @classmethod
    def learn(
        cls, y: object, n: int, allow_missing: bool, advice: str = "", takes_bounds: bool = False
    ) -> tuple[NumberCodec, Floats]:
        """Return the codec and the encoded training target; ``advice`` is for a target of text.

        A target of bounds is encoded by :func:`hilboost.tables.bounds.check_bounds`.
        """
        if takes_bounds and holds_bounds(y):
            return cls(1, True), check_bounds(y, n)
        encoded, flat = check_regression_target(y, n, allow_missing, advice)
        names = frame_columns(y) if encoded.shape[1] > 1 else None
        return cls(encoded.shape[1], flat, None if names is None else tuple(names)), encoded

    def of_numbers(self) -> NumberCodec:
        """Return the codec itself."""
        return self

    @property
    def width(self) -> int:
        """Number of targets."""
        return self.n_targets

    def n_outputs(self, loss: Loss) -> int:
        """Return the number of outputs that the link has, or else one for each target."""
        return (loss.link and loss.link.n_outputs) or self.n_targets

    def encode_rows(self, y: object, n: int, allow_missing: bool = False) -> Floats:
        """Return the numbers themselves, or bounds, (n, 4)."""
        bounds = self.n_targets == 1 and holds_bounds(y)
        return check_bounds(y, n) if bounds else self.encode(y, n, allow_missing)

    def has_bounds(self, target: Target) -> bool:
        """Whether there are more columns than targets."""
        return target.y.shape[1] > self.n_targets

    def encode(self, y: object, n: int, allow_missing: bool = False) -> Floats:
        """Return the numbers themselves."""
        if self.n_targets == 1:
            refuse_bounds(y)
        encoded, _ = check_regression_target(y, n, allow_missing)
        if encoded.shape[1] != self.n_targets:
            raise InvalidData(
                f"y has {counted(encoded.shape[1], 'target column')}; the model was fitted with "
                f"{self.n_targets}."
            )
        names = frame_columns(y)
        if self.names is not None and names is not None and tuple(names) != self.names:
            raise InvalidData(
                f"y has the target columns {first_few(names)} in this order, and the fit had "
                f"{first_few(self.names)}; pass the columns of the fit, in their order."
            )
        return encoded

    def united(self, other: TargetCodec) -> NumberCodec:
        """Return the codec itself."""
        n_targets, names = other.of_numbers().n_targets, other.of_numbers().names
        if n_targets != self.n_targets:
            raise InvalidData(
                f"y has {counted(n_targets, 'target column')} instead of {self.n_targets}."
            )
        if names != self.names:
            own, others = (
                "no names of targets" if one is None else f"the target columns {first_few(one)}"
                for one in (self.names, names)
            )
            raise InvalidData(f"y has {others} instead of {own}.")
        return self

    def shaped(self, predicted: Floats) -> Floats:
        """Give predictions (n, c) the shape of ``y``."""
        return predicted[:, 0] if predicted.shape[1] == 1 and self.flat else predicted


@dataclass(frozen=True)
class ClassCodec(TargetCodec):
    """Codec of classes, encoded by their numbers."""

    kind = "classes"
    classes: NDArray[Any]  # (n_classes,) array: sorted

    @classmethod
    def learn(cls, y: object, n: int) -> tuple[ClassCodec, Floats]:
        """Return the codec and the encoded training target."""
        y = check_classes(y, n)
        codec = cls(distinct(y))
        return codec, np.searchsorted(codec.classes, y).astype(np.float64)[:, None]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    def of_classes(self) -> ClassCodec:
        """Return the codec itself."""
        return self

    def united(self, other: TargetCodec) -> ClassCodec:
        """Return the codec of the classes of both."""
        classes = other.of_classes().classes
        if (classes.dtype.kind in "OUS") != (self.classes.dtype.kind in "OUS"):
            raise InvalidData("the classes of y are text in some rows and numbers in others.")
        return ClassCodec(np.unique(np.concatenate([self.classes, classes])))

    def recoded(self, y: Floats, codec: TargetCodec) -> Floats:
        """Number the classes of another codec as this one does."""
        places = np.searchsorted(self.classes, codec.of_classes().classes)
        return places.astype(np.float64)[y.astype(np.intp)]

    def n_outputs(self, loss: Loss) -> int:
        """Return one for two classes, or else one for each class."""
        return 1 if self.n_classes == 2 else self.n_classes

    def encode(self, y: object, n: int, allow_missing: bool = False) -> Floats:
        """Encode each label by the number of its class."""
        y = self.labels(y, n)
        codes = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
        unknown = self.classes[codes] != y
        if unknown.any():
            raise InvalidData(
                f"y contains the class {y[unknown].tolist()[0]!r}, which is not one of the classes "
                f"of the training rows: {first_few(self.classes.tolist())}."
            )
        return codes.astype(np.float64)[:, None]

    def labels(self, y: object, n: int) -> NDArray[Any]:
        """Return the labels of n rows, (n,), which may be of other classes of the same type."""
        y = check_classes(y, n)
        if (y.dtype.kind in "OUS") != (self.classes.dtype.kind in "OUS"):
            raise InvalidData(
                f"y contains {shown(y[0])}, but the classes of the training rows are "
                f"{first_few(self.classes.tolist())}; pass labels of the same type."
            )
        return y

    def averaged(self, target: Target, rows: NDArray[np.uint32] | None = None) -> Target:
        """Return indicators of the classes."""
        return target.with_y(class_indicators(target, self.n_classes))

    def strata(self, target: Target) -> NDArray[Any]:
        """Use the classes as strata."""
        return target.y[:, 0].astype(np.float64, copy=False)

    def compact(self, y: Floats) -> NDArray[Any]:
        """Return codes as integers of as few bytes as possible."""
        return y.astype(np.min_scalar_type(max(self.n_classes - 1, 0)))

    def has_one_class(self, target: Target) -> bool:
        """Whether only one class has positive weight, so that there is nothing to learn."""
        mass = masses_of_groups(target.y[:, 0].astype(np.int64), self.n_classes, target)
        present = np.flatnonzero(mass)
        if len(present) > 1:
            return False
        only = self.classes.tolist()[int(present[0])]
        warn_caller(
            f"y contains only one class in the rows of positive weight, {only!r}; the model has no "
            "stages and predicts this class for every row.",
            FitWarning,
        )
        return True

    def with_class_weights(self, target: Target, class_weight: object) -> Target:
        """Multiply the weights of the target by the weights of the classes."""
        if class_weight is None:
            return target
        check_class_weight(class_weight, self.classes.tolist())
        codes = target.y[:, 0].astype(np.intp)
        weight = target.row_weights
        if class_weight == "balanced":
            # Use weighted frequencies, so that a weight of 2 is equivalent to repeating the row.
            weighted = replace(target, weight=weight)
            mass = masses_of_groups(codes, self.n_classes, weighted)
            of_all = total_weight(weighted)
            factor = (of_all / (np.count_nonzero(mass) * np.maximum(mass, 1e-300)))[codes]
        elif not len(codes):
            factor = np.ones(0)
        else:
            factor = compute_sample_weight(class_weight, self.classes[codes])
        return replace(target, weight=weight * factor)


@dataclass(frozen=True)
class OutputCodec(TargetCodec):
    """Codec of targets that are points of an output space."""

    kind = "structured"
    embedding: Embedding  # the fitted output space
    # (m,) int64: training rows whose points span the output space
    span_rows: NDArray[np.int64] = field(repr=False)
    span_codes: Floats = field(repr=False)  # (m, r) float64: these points
    n_train: int  # number of training rows
    # whether a last column of the target holds the distance of each label from the span
    outside: bool = False

    @classmethod
    def learn(
        cls,
        y: object,
        n: int,
        space: OutputSpace,
        outside: bool = False,
        exchange: Exchange | None = None,
    ) -> tuple[OutputCodec, Floats]:
        """Return the codec and the encoded training target; ``exchange`` divides the work."""
        from hilboost.outputs.distances import spanning_rows  # not for numbers and classes

        y = as_sequence(y)
        check_length(y, n)
        embedding = space.fit(y) if exchange is None else space.fit_among(y, exchange)
        codes = embedding.encode_training(y)
        if codes.shape[1] == 0:
            raise InvalidData(
                "the output kernel is zero for all training outputs; check the kernel and its "
                "length scale."
            )
        rows = spanning_rows(embedding, codes)
        codec = cls(embedding, rows, codes[rows], len(codes), outside)
        return codec, _with_outside(codes, embedding.training_norms(y)) if outside else codes

    def of_structures(self) -> OutputCodec:
        """Return the codec itself."""
        return self

    @property
    def width(self) -> int:
        """Dimensions of the points, and the distance from their span, if there is one."""
        return self.span_codes.shape[1] + int(self.outside)

    def encode(self, y: object, n: int, allow_missing: bool = False) -> Floats:
        """Map the labels to points of the output space."""
        y = as_sequence(y)
        check_length(y, n)
        codes = self.embedding.encode(y)
        return _with_outside(codes, self.embedding.norms(y)) if self.outside else codes


def _with_outside(codes: Floats, norms: Floats) -> Floats:
    """Add a column with the distances of labels ``codes`` (n, r) from the span, (n, r + 1)."""
    inside = np.einsum("ij,ij->i", codes, codes)
    square = np.where(norms - inside > _ROUNDING * inside, norms - inside, 0.0)
    return np.column_stack([codes, np.sqrt(square)])

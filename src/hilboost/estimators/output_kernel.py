"""Base class of output kernel models, which embed labels in an output space and decode them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.linalg
from scipy.sparse import csr_array
from sklearn.base import RegressorMixin
from sklearn.utils import _safe_indexing

from hilboost.core.callback import Callback
from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.errors import InvalidData, first_true, unknown_name
from hilboost.core.exchange import Exchange
from hilboost.core.output_space import Choice, Embedding
from hilboost.estimators.base import BoostingEstimator
from hilboost.estimators.output_quality import CandidateSets, OutputQuality
from hilboost.estimators.preparation import FitArguments
from hilboost.estimators.signatures import public_fit, public_methods, public_prediction
from hilboost.model.codecs import OutputCodec, TargetCodec
from hilboost.outputs import as_output
from hilboost.tables.arrays import n_rows, without_mask
from hilboost.tables.sparse import check_sparse, is_sparse
from hilboost.validation.targets import as_sequence
from hilboost.validation.weights import check_not_negative, errors_in_rows


@public_methods
class OutputKernelEstimator(OutputQuality, RegressorMixin, CandidateSets, BoostingEstimator):
    """Base class of models that predict points of an output space."""

    _kind = "structured"
    output: Any
    decode: str
    metric: str
    # Labels and points

    def _learn_codec(
        self, y: object, n: int, exchange: Exchange | None = None
    ) -> tuple[TargetCodec, Floats]:
        """Fit the encoding of the labels; with ``exchange``, together with other workers."""
        space, outside = as_output(self.output), self._measures_outside()
        codec, codes = OutputCodec.learn(y, n, space, outside, exchange)
        self._check_decode(codec.embedding)
        return codec, codes

    def _measures_outside(self) -> bool:
        """Whether the loss needs the distances of the labels from the span of the outputs."""
        return False

    def _check_decode(self, embedding: Embedding) -> None:
        """Check that the output space is valid and supports the decoding method and the metric."""
        as_output(self.output)
        self._named_metric(embedding)
        if self.decode != "auto" and self.decode not in embedding.ways:
            raise unknown_name("decode", self.decode, ("auto", *embedding.ways))

    @property
    def output_(self) -> Embedding:
        """The fitted output space."""
        return self.fitted_.output.embedding

    @public_fit
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: PerRow = None,
        *,
        groups: PerRow = None,
        time: object = None,
        X_val: object = None,
        y_val: object = None,
        sample_weight_val: PerRow = None,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or data frame (n, d)
            Inputs.  NaN marks missing values.  Text columns are categorical by default (see
            ``categorical_features``).
        y : sequence of n labels
            Labels of the type given by ``output``: rows of numbers, sets, rankings, strings, a
            Gram matrix and so on.
        sample_weight : array-like (n,), optional
            A row with weight 2 counts twice.  Rows with zero weight are ignored, but a Gram matrix
            keeps its size, and predicted indices refer to all of its rows.
        groups, time : array-like (n,), optional
            Group of each row, for predictions of other groups, or time, numbers or dates, for
            predictions of later rows; see ``validation``.
        X_val, y_val, sample_weight_val : optional
            Held-out data for early stopping.  If ``y`` is a Gram matrix, ``y_val`` contains the
            kernel values with the training outputs, (n_val, n).
        callbacks : sequence of callables
            Called with an :class:`~hilboost.core.callback.Event` after each stage.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            Invalid parameters or data.  The message names the row and suggests a fix.
        """
        given = FitArguments(X, y, sample_weight, groups, time=time)
        held_out = FitArguments(X_val, y_val, sample_weight_val)
        return self._fit_some(given, held_out, callbacks)

    def _fit_some(
        self, given: FitArguments, held_out: FitArguments, callbacks: Sequence[Callback]
    ) -> Self:
        """Fit to the rows whose weight is not zero."""
        names: AbstractContextManager[None] = nullcontext()
        if given.sample_weight is not None and given.y is not None:
            given, names = self._without_zero_weights(replace(given, y=as_sequence(given.y)))
        with names:
            return self._fit(given, held_out, callbacks)

    def _without_zero_weights(
        self, given: FitArguments
    ) -> tuple[FitArguments, AbstractContextManager[None]]:
        """Remove rows with zero weight, so that their labels do not span the output space.

        Returns the rows and a context in which messages have their numbers among all rows.
        """
        weight = np.asarray(without_mask(given.sample_weight))
        for table, what in ((given.X, "X"), (given.y, "y")):
            if is_sparse(table):
                check_sparse(table, what)
        beside = {"groups": given.groups, "time": given.time}
        beside = {name: values for name, values in beside.items() if values is not None}
        if any(weight.shape != (n_rows(one),) for one in (given.X, given.y, *beside.values())):
            return given, nullcontext()  # later checks report the wrong length
        weight = check_not_negative(weight, weight)  # before rows are left out
        given = replace(given, sample_weight=weight)
        rows = np.flatnonzero(weight != 0)
        space = as_output(self.output)
        if not 0 < len(rows) < len(weight) or space.predicts_rows:
            return given, nullcontext()
        kept = {name: _safe_indexing(values, rows) for name, values in beside.items()}
        X, y = _safe_indexing(given.X, rows), space.take_rows(given.y, rows)
        given = replace(given, X=X, y=y, sample_weight=weight[rows], **kept)
        return given, errors_in_rows(rows)

    # Prediction

    @public_prediction
    def predict(
        self,
        X: object,
        candidates: object = None,
        allowed: Sequence[Sequence[int]] | None = None,
        *,
        return_std: bool = False,
    ) -> Any:
        """Predict the labels whose embeddings are closest to the predicted points (G2007, eq. 8).

        Parameters
        ----------
        X : array-like (n, d)
        candidates : sequence of labels, optional
            Labels to choose from.  By default, they depend on ``decode``.
        allowed : sequence of n sequences of int, optional
            Indices of the candidates that are allowed for each row.
        return_std : bool, default=False
            Whether to also return the root of the expected squared distance ``|φ(y) - F(x)|²`` of
            a new label from the predicted point, estimated on the rows of :meth:`calibrate`.

        Returns
        -------
        labels : (n, …) array or list of n labels
        std : (n,) float64
            Returned only with ``return_std=True``, in units of the output space.

        Raises
        ------
        InvalidData
            ``return_std=True`` with a model that is not calibrated.
        """
        raw = self.predict_raw(X)
        labels = self._decoded(raw, self._choice(candidates, allowed))
        return (labels, self._std(raw)) if return_std else labels

    def predict_embedding(self, X: object) -> Floats:
        """Predict points ``F(x)`` of the output space.

        Parameters
        ----------
        X : array-like (n, d)

        Returns
        -------
        (n, r) float64
        """
        return self.predict_raw(X)

    def predict_kernel(self, X: object, X2: object = None) -> Floats:
        """Predict the output kernel ``⟨F(x), F(x')⟩`` (G2007, eq. 7).

        Parameters
        ----------
        X : array-like (n, d)
        X2 : array-like (m, d), optional
            Defaults to ``X``.

        Returns
        -------
        (n, m) float64
        """
        raw = self.predict_raw(X)
        return raw @ (raw if X2 is None else self.predict_raw(X2)).T

    def predict_weights(self, X: object) -> csr_array:
        """Express predictions as linear combinations of training outputs (G2007, eq. 5).

        Parameters
        ----------
        X : array-like (n, d)

        Returns
        -------
        (n, n_train) sparse float64
            Weights in ``F(x) = Σ_i w_i(x) φ(y_i)``, over a minimal set of training outputs that
            spans the output space.  Columns are the training rows with positive weight, or all
            training rows if ``y`` is a Gram matrix.
        """
        return self._combinations(self.predict_raw(X))

    def _combinations(self, raw: Floats) -> csr_array:
        """Express points (n, r) as combinations of training outputs, (n, n_train)."""
        _refuse_unfinished(raw)
        codec = self.fitted_.output
        rows, codes, n_train = codec.span_rows, codec.span_codes, codec.n_train
        weights = scipy.linalg.lstsq(codes.T, raw.T)[0].T
        columns = np.tile(rows, len(raw))
        starts = len(rows) * np.arange(len(raw) + 1)
        return csr_array((weights.ravel(), columns, starts), shape=(len(raw), n_train))

    def staged_predict(
        self, X: object, candidates: object = None, allowed: Sequence[Sequence[int]] | None = None
    ) -> Iterator[Any]:
        """Predict labels after each stage.

        Parameters
        ----------
        X : array-like (n, d)
        candidates, allowed : optional
            See :meth:`predict`.

        Yields
        ------
        (n, …) array or list of n labels
        """
        choice = self._choice(candidates, allowed)
        for raw in self._staged_raw(X):
            yield self._decoded(raw, choice)

    def staged_predict_embedding(self, X: object) -> Iterator[Floats]:
        """Predict points of the output space after each stage.

        Parameters
        ----------
        X : array-like (n, d)

        Yields
        ------
        (n, r) float64
        """
        for raw in self._staged_raw(X):
            yield raw.copy()

    def staged_predict_kernel(self, X: object, X2: object = None) -> Iterator[Floats]:
        """Predict the output kernel after each stage.

        Parameters
        ----------
        X : array-like (n, d)
        X2 : array-like (m, d), optional
            Defaults to ``X``.

        Yields
        ------
        (n, m) float64
        """
        if X2 is None:
            for raw in self._staged_raw(X):
                yield raw @ raw.T
        else:
            for raw, other in zip(self._staged_raw(X), self._staged_raw(X2), strict=True):
                yield raw @ other.T

    def staged_predict_weights(self, X: object) -> Iterator[csr_array]:
        """Express predictions as combinations of training outputs after each stage.

        See :meth:`predict_weights`.

        Parameters
        ----------
        X : array-like (n, d)

        Yields
        ------
        (n, n_train) sparse float64
        """
        for raw in self._staged_raw(X):
            yield self._combinations(raw)

    def decode_raw(self, raw: Floats) -> Any:
        """Decode points of the output space into labels.

        Parameters
        ----------
        raw : (n, r) float64

        Returns
        -------
        (n, …) array or list of n labels
        """
        return self._decoded(raw, None)

    def _decoded(self, raw: Floats, choice: Choice | None) -> Any:
        _refuse_unfinished(raw)
        return self.output_.decode(raw, self._way(self.output_), choice)

    def _way(self, embedding: Embedding) -> str:
        """The decoding method: the given one, that of the metric, or the first of the space."""
        if self.decode != "auto":
            return self.decode
        metric = self._named_metric(embedding)
        return embedding.ways[0] if metric is None else metric.way

    def _choice(self, candidates: object, allowed: Sequence[Sequence[int]] | None) -> Choice | None:
        if candidates is None:
            if allowed is not None:
                raise InvalidData(
                    "allowed contains indices of candidates, but candidates is None; pass both."
                )
            return None
        return Choice(candidates, allowed)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags


def _refuse_unfinished(raw: Floats) -> None:
    """Reject points that are not finite, because they have no pre-images."""
    if (row := first_true(~np.isfinite(raw).all(axis=1))) is not None:
        raise InvalidData(
            f"the point predicted for row {row} of X is not finite; check the values of this row "
            "and, if the model was loaded, its file."
        )

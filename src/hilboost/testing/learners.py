"""Contract tests of base learners."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Self

import numpy as np

from hilboost.core.base_model import BaseModel, Term
from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts, InvalidData
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.row_sample import RowSample
from hilboost.estimators import BoostingRegressor
from hilboost.testing.contract import ensure, ensure_close, ensure_raises, read_only
from hilboost.testing.models import BoostingContract

_N = 80


class LearnerContract(BoostingContract):
    """Tests of a learner: base models, randomness, and a model with the learner.

    Attributes
    ----------
    n_outputs : int
        Number of columns of the gradients.

    Examples
    --------
    >>> from hilboost.learners.tree import TreeLearner
    >>> from hilboost.testing import LearnerContract
    >>> class TestTrees(LearnerContract):
    ...     def make(self):
    ...         return TreeLearner(min_samples_leaf=2)
    """

    n_outputs: int = 2

    @classmethod
    def of(cls, part: Any, *arrays: Any, **attributes: Any) -> Self:
        """Create the contract tests of a learner; ``n_outputs`` is that of ``y``."""
        if len(arrays) == 1:
            raise InvalidData("X was passed without y; pass both or neither.")
        if arrays:
            X, y = (np.asarray(array, dtype=np.float64) for array in arrays)
            arrays = X, y.reshape(len(y), -1)
            attributes = {"n_outputs": arrays[1].shape[1], **attributes}
        return super().of(part, *arrays, **attributes)

    def data(self, rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        """Draw inputs, and targets that depend on them.

        Parameters
        ----------
        rng : numpy.random.Generator
        n : int

        Returns
        -------
        tuple
            ``X`` (n, d), and targets (n, n_outputs).
        """
        if drawn := self._drawn(rng, n):
            return drawn[0], drawn[1]
        targets = rng.normal(size=(n, self.n_outputs)) * 2 + 1
        noisy = targets + rng.normal(size=targets.shape) / 2
        return np.column_stack([noisy, rng.normal(size=(n, 2))]), targets

    def build(self, **parameters: Any) -> Any:
        """Create a boosting estimator with the learner and squared error."""
        small = {"n_estimators": 5, "early_stopping": False, "random_state": 0}
        return BoostingRegressor(learner=self.make(), **small | parameters)

    def table(self, n: int = _N) -> tuple[Any, Any]:
        """Return the inputs and targets of :meth:`data`."""
        X, y = self.data(np.random.default_rng(3), n)
        return X, (y[:, 0] if y.shape[1] == 1 else y)

    def own_classes(self, model: Any) -> Iterable[type]:
        """Return the classes of the learner and of its base models."""
        base_models = (term.model for stage in model.model_.stages for term in stage.terms)
        return (type(self.make()), *map(type, base_models))

    def fitted(
        self,
        seed: int = 0,
        sample: RowSample | None = None,
        gradients: Gradients | None = None,
        hessian: Floats | None = None,
    ) -> tuple[list[FittedTerm], Floats, Gradients]:
        """Fit the learner once.

        Parameters
        ----------
        seed : int
            Seed of the generator passed to ``fit``.
        sample : RowSample, optional
            By default, all rows without weights.
        gradients : Gradients, optional
            By default, the centered targets.
        hessian : (n, r) float64, optional

        Returns
        -------
        tuple
            List of FittedTerm, ``X``, and the gradients.
        """
        learner = self.make()
        X, targets = self.data(np.random.default_rng(3), _N)
        if gradients is None:
            negative = np.array(targets - targets.mean(axis=0), order=learner.capabilities.layout)
            gradients = Gradients(negative, hessian)
        sample = RowSample(None, None) if sample is None else sample
        data = learner.prepare(X, sample.weight, 0, 1)
        try:
            rng = np.random.default_rng(seed)
            return learner.fit(data, gradients, sample, rng), X, gradients
        finally:
            learner.close(data)

    def test_every_output_has_a_base_model(self) -> None:
        """The terms cover each output column once, with coefficients of one."""
        fitted, _, gradients = self.fitted()
        said = "fit must return a list of FittedTerm whose models are BaseModel objects."
        for one in fitted:
            ensure(isinstance(one, FittedTerm) and isinstance(one.term.model, BaseModel), said)
        covered = [column for one in fitted for column in _columns_of(one.term)]
        said = f"The terms must cover each output column once; they cover {covered}."
        ensure(sorted(covered) == list(range(gradients.negative_gradient.shape[1])), said)
        for one in fitted:
            said = "fit must return terms with coefficients of one."
            ensure((one.term.coefficient == 1).all(), said)

    def test_outputs_are_predictions_of_the_training_rows(self) -> None:
        """``outputs``, or ``values[leaves]`` of leaf models, equal the predictions."""
        fitted, X, _ = self.fitted()
        for one in fitted:
            said = "A FittedTerm must have either outputs or leaves."
            ensure((one.outputs is None) != (one.leaves is None), said)
            shape = (len(X), len(_columns_of(one.term)))
            predicted = one.term.model.predict_raw(X)
            said = f"predict_raw must return shape {shape}; got {predicted.shape}."
            ensure(predicted.shape == shape, said)
            ensure(np.isfinite(predicted).all(), "predict_raw must return finite numbers.")
            said = "predict_raw of the training rows must equal the outputs returned by fit."
            ensure_close(_outputs(one), predicted, said, 1e-9, 1e-9)

    def test_values_of_cells_can_be_replaced(self) -> None:
        """``with_values`` replaces the values of leaf models."""
        fitted, X, _ = self.fitted()
        for one in fitted:
            model = one.term.model.on_leaves()
            if model is None:
                continue
            said = "leaves(X) of the training rows must equal the leaves returned by fit."
            ensure_close(model.leaves(X), one.leaves, said)
            values = np.random.default_rng(1).normal(size=model.values.shape)
            other = model.with_values(values)
            said = "predict_raw must use the values set by with_values."
            ensure_close(other.predict_raw(X), values[one.leaves], said)
            said = "with_values must not modify the model."
            ensure_close(model.predict_raw(X), model.values[one.leaves], said)

    def test_a_step_along_the_outputs_goes_downhill(self) -> None:
        """The outputs are a descent direction, with and without a hessian."""
        _, targets = self.data(np.random.default_rng(3), _N)
        hessian = np.random.default_rng(4).uniform(0.5, 2, size=targets.shape)
        for given in (None, hessian):
            fitted, _, gradients = self.fitted(hessian=given)
            slope = sum(
                float((_outputs(one) * gradients.negative_gradient[:, one.term.columns]).sum())
                for one in fitted
            )
            ensure(slope > 0, "The outputs of the base models must be a descent direction.")

    def test_inputs_are_not_changed(self) -> None:
        """``fit`` does not modify ``X``, the gradients or the sample."""
        learner = self.make()
        X, targets = self.data(np.random.default_rng(3), _N)
        negative = np.array(targets - targets.mean(axis=0), order=learner.capabilities.layout)
        weight = np.ones(_N) if self.takes_weights else None
        rows = np.arange(0, _N, 2, dtype=np.uint32) if self.takes_samples else None
        arrays = [one for one in (X, negative, weight, rows) if one is not None]
        copies = read_only(*arrays)
        data = learner.prepare(X, weight, 0, 1)
        rng = np.random.default_rng(0)
        fit = learner.fit(data, Gradients(negative), RowSample(rows, weight), rng)
        learner.close(data)
        for one in fit:
            one.term.model.predict_raw(X)
        for array, copied in zip(arrays, copies, strict=True):
            ensure_close(array, copied, "The learner must not modify its inputs.")

    def test_the_generator_is_the_only_source_of_randomness(self) -> None:
        """Two fits with the same seed give equal models."""
        one, X, _ = self.fitted(seed=5)
        other, _, _ = self.fitted(seed=5)
        for a, b in zip(one, other, strict=True):
            said = "Two fits with the same seed must give equal models."
            ensure_close(b.term.model.predict_raw(X), a.term.model.predict_raw(X), said)

    def test_rows_outside_of_the_sample_are_not_learned_from(self) -> None:
        """Gradients of rows outside the sample have no effect, but these rows have outputs."""
        rows = np.flatnonzero(np.arange(_N) % 4 != 0).astype(np.uint32)
        sample = RowSample(rows, None)
        if not self.takes_samples:
            ensure_raises(
                IncompatibleParts,
                "",
                lambda: self.fitted(sample=sample),
                "A learner that does not support samples of rows must reject them.",
            )
            return
        one, X, gradients = self.fitted(sample=sample)
        negative = gradients.negative_gradient.copy(order="A")
        negative[::4] = 1e3
        other, _, _ = self.fitted(sample=sample, gradients=Gradients(negative))
        for a, b in zip(one, other, strict=True):
            ensure(len(_outputs(a)) == _N, "Rows outside the sample must have outputs.")
            said = "Gradients of rows outside the sample must not change the model."
            ensure_close(b.term.model.predict_raw(X), a.term.model.predict_raw(X), said)

    def test_parts_of_the_data_are_those_of_the_rows(self) -> None:
        """Base models of a part of the data learn from its rows; joined parts are the whole."""
        learner = self.make()
        division = learner.capabilities.row_division
        if division is None:
            return
        X, targets = self.data(np.random.default_rng(3), _N)
        negative = np.array(targets - targets.mean(axis=0), order=learner.capabilities.layout)
        ranges = [slice(0, _N // 3), slice(_N // 3, _N)]
        sample = RowSample(None, None)

        def outputs(data: Any, gradients: Floats) -> Floats:
            rng = np.random.default_rng(0)
            fit = learner.fit(data, Gradients(gradients), sample, rng)
            own = np.concatenate([_outputs(one) for one in fit], axis=1)
            raw = np.ones_like(own)
            terms = [replace(one.term, coefficient=0.5 * one.term.coefficient) for one in fit]
            division.add_outputs(data, terms, raw, 2)
            said = (
                "add_outputs must add the outputs of the base models for the rows of the data, "
                "multiplied by the coefficients."
            )
            ensure_close(raw, 1 + 0.5 * own, said)
            return own

        whole = learner.prepare(X, None, 0, 1)
        expected = outputs(whole, negative)
        parts = division.divided(whole, ranges)
        for part, rows in zip(parts, ranges, strict=True):
            own = np.array(negative[rows], order=learner.capabilities.layout)
            said = "divided must return the data of each range of rows."
            ensure(outputs(part, own).shape == own.shape, said)
        said = "joined must return the data of the rows of all parts, in their order."
        ensure_close(outputs(division.joined(parts), negative), expected, said)
        fit = learner.fit(whole, Gradients(negative), sample, np.random.default_rng(0))
        others, _ = self.data(np.random.default_rng(4), _N)
        raw, direct = np.zeros(negative.shape), np.zeros(negative.shape)
        terms = [one.term for one in fit]
        division.add_outputs(division.prepared_like(whole, others), terms, raw, 2)
        for term in terms:
            direct[:, term.columns] += term.coefficient * term.model.predict_raw(others)
        said = "prepared_like must return data of the given rows for add_outputs."
        ensure_close(raw, direct, said)
        learner.close(whole)

    def test_a_sum_of_base_models_is_their_sum(self) -> None:
        """``sum_of`` adds the predictions multiplied by the coefficients."""
        fitted, X, gradients = self.fitted()
        n_outputs = gradients.negative_gradient.shape[1]
        scaled = [replace(one.term, coefficient=0.3 * one.term.coefficient) for one in fitted]
        expected = np.zeros((len(X), n_outputs))
        for term in scaled:
            expected[:, term.columns] += term.coefficient * term.model.predict_raw(X)
        raw = np.zeros((len(X), n_outputs))
        for kind in {type(term.model) for term in scaled}:
            terms = [term for term in scaled if type(term.model) is kind]
            kind.sum_of(terms).add_to(raw, X, 1)
        said = "sum_of must add the predictions multiplied by the coefficients."
        ensure_close(raw, expected, said, 1e-9, 1e-9)


def _columns_of(term: Term) -> range:
    return range(term.columns.start, term.columns.stop)


def _outputs(fitted: FittedTerm) -> Floats:
    """Return the outputs of the base model on all training rows, (n, r)."""
    if fitted.outputs is not None:
        return fitted.outputs
    model = fitted.term.model.on_leaves()
    if fitted.leaves is None or model is None:
        raise AssertionError("A FittedTerm without outputs must have leaves and a LeafModel.")
    ensure((fitted.leaves >= 0).all(), "Each row must be in a leaf.")
    return model.values[fitted.leaves]

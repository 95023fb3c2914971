"""Contract tests of losses."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.gradients import Gradients
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.estimators import BoostingClassifier, BoostingRegressor
from hilboost.losses.registry import gives_probabilities
from hilboost.testing.contract import Contract, ensure, ensure_close, read_only
from hilboost.testing.models import BoostingContract

_N = 40
_STEP = 1e-5
_LONGEST_STEP = 10.0  # Newton steps beyond it overshoot, and may be shortened to it


class GradientContract(Contract):
    """Checks of the values and derivatives of any loss."""

    def draw(self) -> tuple[Loss, Target, Floats]:
        """Return a loss, a target, and ``raw``."""
        raise NotImplementedError

    def _draw_weighted(self) -> tuple[Loss, Target, Floats]:
        """Do the same, with weights if the contract has any."""
        return self.draw()

    def test_the_target_is_accepted(self) -> None:
        """``check`` accepts valid targets."""
        loss, target, _ = self._draw_weighted()
        loss.check(target)

    def test_shapes(self) -> None:
        """The initial prediction, values, gradients and hessians have the right shapes."""
        loss, target, raw = self.draw()
        start, value = loss.initial_raw(target), loss.value(target, raw)
        gradients = loss.gradients(target, raw)
        ensure(start.ndim == 1, f"initial_raw must return shape (r,); got {start.shape}.")
        ensure(value.shape == (len(raw),), f"value must return shape (n,); got {value.shape}.")
        for name, array in (
            ("negative_gradient", gradients.negative_gradient),
            ("hessian", gradients.hessian),
        ):
            if array is not None:
                said = f"{name} must have the shape of raw, {raw.shape}; got {array.shape}."
                ensure(array.shape == raw.shape, said)
        said = "The hessian must not have negative entries."
        ensure(gradients.hessian is None or bool((gradients.hessian >= 0).all()), said)

    def test_inputs_are_not_changed(self) -> None:
        """The methods do not modify ``raw`` or the target, in either memory layout."""
        for order in ("C", "F"):
            loss, target, raw = self._draw_weighted()
            raw = np.array(raw, order=order)
            arrays = [one for one in (raw, target.y, target.weight) if one is not None]
            copies = read_only(*arrays)
            loss.initial_raw(target)
            loss.value(target, raw)
            loss.gradients(target, raw)
            loss.inverse_link(raw)
            for array, copied in zip(arrays, copies, strict=True):
                ensure_close(array, copied, "The loss must not modify its inputs.")

    def test_far_away_nothing_overflows(self) -> None:
        """Values and derivatives are finite for large ``raw``."""
        loss, target, raw = self.draw()
        for far in (raw + 1e4, raw - 1e4, 1e3 * raw):
            gradients = loss.gradients(target, far)
            for name, array in (
                ("value", loss.value(target, far)),
                ("negative", gradients.negative_gradient),
                ("hessian", gradients.hessian),
            ):
                said = f"{name} must be finite for large raw."
                ensure(array is None or np.isfinite(array).all(), said)


class LossContract(GradientContract, BoostingContract):
    """Tests of a loss: derivatives, initial prediction, weights, leaves, and a model with the loss.

    Attributes
    ----------
    classifier : bool
        Whether the loss is for ``BoostingClassifier``: targets are class codes 0, 1, … in one
        column, and ``inverse_link`` returns probabilities, or scores if ``link`` declares so.
    hessian : {"exact", "bound"} or float
        Whether the hessian is the second derivative, an upper bound on it, or this multiple of it.
    best_leaves : bool
        Whether ``leaf_values`` are the best constants; otherwise, they only have to decrease the
        loss.

    Examples
    --------
    >>> from hilboost.losses import SquaredError
    >>> from hilboost.testing import LossContract
    >>> class TestSquaredError(LossContract):
    ...     def make(self):
    ...         return SquaredError()
    ...
    ...     def targets(self, rng, n):
    ...         return rng.normal(size=n)
    """

    classifier: bool = False
    hessian: Literal["exact", "bound"] | float = "exact"
    best_leaves: bool = True

    @classmethod
    def of(cls, part: Any, *arrays: Any, **attributes: Any) -> Self:
        """Create the contract tests of a loss; one that adapts to the data may rise in a stage."""
        return super().of(part, *arrays, **{"monotone": not part.adaptive, **attributes})

    def targets(self, rng: np.random.Generator, n: int) -> Any:
        """Draw valid targets; by default normal random numbers, or codes of two classes.

        Parameters
        ----------
        rng : numpy.random.Generator
        n : int

        Returns
        -------
        (n,) or (n, c) array
        """
        if drawn := self._drawn(rng, n):
            return np.asarray(drawn[0])
        return np.arange(n) % 2 if self.classifier else rng.normal(1, 2, n)

    def build(self, **parameters: Any) -> Any:
        """Create an estimator of boosted trees with the loss."""
        kind = BoostingClassifier if self.classifier else BoostingRegressor
        small = {"n_estimators": 5, "min_samples_leaf": 2, "max_leaf_nodes": 8}
        return kind(
            self.make(), **small | {"early_stopping": False, "random_state": 0} | parameters
        )

    def table(self, n: int = 80) -> tuple[Any, Any]:
        """Draw a table whose first columns are the targets with noise."""
        rng = np.random.default_rng(3)
        y = _columns(self.targets(rng, n))
        X = np.column_stack([y + rng.normal(size=y.shape) / 2, rng.normal(size=(n, 2))])
        y = y.astype(int) if self.classifier else y
        return X, (y[:, 0] if y.shape[1] == 1 else y)

    def draw(self, weighted: bool = False) -> tuple[Loss, Target, Floats]:
        """Return a loss, a target, and ``raw`` around the initial prediction.

        Parameters
        ----------
        weighted : bool

        Returns
        -------
        tuple
            Loss, Target, and ``raw`` (n, r).
        """
        rng = np.random.default_rng(7)
        loss, y = self.make(), _columns(self.targets(rng, _N))
        target = Target(y, rng.uniform(0.2, 3, _N) if weighted else None)
        start = loss.initial_raw(target)
        return loss, target, start + rng.normal(size=(_N, len(start))) * 0.7

    def _draw_weighted(self) -> tuple[Loss, Target, Floats]:
        return self.draw(weighted=True)

    def test_gradient_is_the_derivative_of_the_value(self) -> None:
        """The negative gradient agrees with central differences."""
        loss, target, raw = self.draw()
        negative = loss.gradients(target, raw).negative_gradient
        for k in range(raw.shape[1]):
            up, down = (loss.value(target, _moved(raw, k, step)) for step in (_STEP, -_STEP))
            said = f"Column {k} of negative_gradient must be minus the derivative of value."
            ensure_close(negative[:, k], (down - up) / (2 * _STEP), said, 1e-6, 1e-7)

    def test_hessian_is_the_derivative_of_the_gradient(self) -> None:
        """The hessian is as :attr:`hessian` declares, or more for short steps; never negative."""
        loss, target, raw = self.draw()
        gradients = loss.gradients(target, raw)
        negative, hessian = gradients.negative_gradient, gradients.hessian
        hessian = np.ones_like(raw) if hessian is None else hessian
        ensure((hessian >= 0).all(), "The hessian must not have negative entries.")
        for k in range(raw.shape[1]):
            up, down = (
                loss.gradients(target, _moved(raw, k, step)).negative_gradient[:, k]
                for step in (_STEP, -_STEP)
            )
            second = (down - up) / (2 * _STEP)
            if self.hessian == "bound":
                said = f"Column {k} of the hessian must be an upper bound on the second derivative."
                ensure((second <= hessian[:, k] + 1e-6 * (1 + abs(second))).all(), said)
                continue
            factor = 1.0 if self.hessian == "exact" else float(self.hessian)
            least = factor * second
            most = np.maximum(least, factor * np.abs(negative[:, k]) / _LONGEST_STEP)
            said = (
                f"Column {k} of the hessian must be {factor:g} times the second derivative, or be "
                f"raised to at most {factor / _LONGEST_STEP:g} times the size of the gradient."
            )
            ensure_close(hessian[:, k], np.clip(hessian[:, k], least, most), said, 1e-6, 1e-7)

    def test_start_minimizes_the_mean_value(self) -> None:
        """``initial_raw`` minimizes the mean loss, with and without weights."""
        for weighted in (False, True):
            rows = " for weighted rows" if weighted else ""
            loss, target, raw = self.draw(weighted)
            start, rng = loss.initial_raw(target), np.random.default_rng(1)
            lowest = _mean_value(loss, target, start)
            directions = [*np.eye(raw.shape[1]), *rng.normal(size=(5, raw.shape[1]))]
            for size in (1e-4, -1e-4, 1e-2, -1e-2, 1, -1):
                for direction in directions:
                    shifted = _mean_value(loss, target, start + size * direction)
                    ensure(
                        shifted >= lowest - 1e-12 * abs(lowest),
                        f"initial_raw must be the best constant{rows}; its mean loss is {lowest}, "
                        f"and {shifted} at initial_raw + {size * direction}.",
                    )

    def test_weights_repeat_rows_for_the_start(self) -> None:
        """For ``initial_raw``, integer weights are equivalent to repeated rows."""
        loss, target, _ = self.draw()
        weight = np.random.default_rng(2).integers(1, 4, size=_N)
        ensure_close(
            loss.initial_raw(Target(target.y, weight.astype(float))),
            loss.initial_raw(Target(np.repeat(target.y, weight, axis=0))),
            "initial_raw with weights must equal initial_raw with repeated rows.",
            rtol=1e-10,
            atol=1e-12,
        )

    def test_a_row_depends_on_itself_alone(self) -> None:
        """Value and derivatives of a row do not depend on other rows."""
        loss, target, raw = self.draw()
        half = slice(7, 20)
        some, raw_of_some = target.rows(half), raw[half]
        sentence = "of a row must not depend on other rows."
        value, part = loss.value(target, raw), loss.value(some, raw_of_some)
        ensure_close(value[half], part, f"The value {sentence}")
        whole, gradients = loss.gradients(target, raw), loss.gradients(some, raw_of_some)
        said = f"The gradient {sentence}"
        ensure_close(whole.negative_gradient[half], gradients.negative_gradient, said)
        if whole.hessian is not None:
            ensure_close(whole.hessian[half], gradients.hessian, f"The hessian {sentence}")

    def test_value_and_gradients_are_those_of_both_methods(self) -> None:
        """Evaluating both at once changes no bit."""
        for order in ("C", "F"):
            loss, target, raw = self.draw()
            raw = np.array(raw, order=order)
            # The memory is that of some rows of a larger array.
            whole = np.full((2, *raw.shape), np.nan).repeat(2, axis=1)
            rows = slice(7, 7 + len(raw))
            first, second = (np.array(one, order=order)[rows] for one in whole)
            for memory in (None, Gradients(first, second)):
                value, both = loss.value_and_gradients(target, raw, memory)
                one = loss.gradients(target, raw)
                curved, other = both.hessian, one.hessian
                same = (
                    np.array_equal(value, loss.value(target, raw))
                    and np.array_equal(both.negative_gradient, one.negative_gradient)
                    and (curved is other or np.array_equal(np.asarray(curved), np.asarray(other)))
                    and both.structure == one.structure
                )
                sentence = "must return the results of value and gradients, bit for bit."
                ensure(same, f"value_and_gradients {sentence}")

    def test_gradients_checked_by_the_value_are_numbers(self) -> None:
        """With ``checked_by_value``, gradients are finite wherever values are."""
        loss, target, raw = self.draw()
        if not loss.checked_by_value:
            return
        for number in (np.nan, np.inf, -np.inf, 1e300, -1e300):
            odd = raw.copy()
            odd[:, 0] = number
            with np.errstate(all="ignore"):
                value, found = loss.value_and_gradients(target, odd)
            hessian = np.ones_like(raw) if found.hessian is None else found.hessian
            valid = np.isfinite(found.negative_gradient) & np.isfinite(hessian) & (hessian >= 0)
            ensure(
                (valid.all(axis=1) | ~np.isfinite(value)).all(),
                "A loss that declares checked_by_value must have no finite value where its "
                "gradients are not finite or its hessian is negative.",
            )

    def test_a_symmetric_loss_sees_the_size_of_residuals(self) -> None:
        """A ``symmetric`` loss has the same values at mirrored targets, rising from zero."""
        loss, target, raw = self.draw()
        if not loss.symmetric:
            return
        y = target.y[:, : raw.shape[1]]
        values = [loss.value(Target(raw + part * (y - raw)), raw) for part in (1.0, -1.0, 0.5, 0.0)]
        said = "A symmetric loss depends on the sign of y - raw."
        ensure_close(values[0], values[1], said, rtol=1e-9, atol=1e-12)
        said = "A symmetric loss must rise with the size of y - raw."
        ensure((values[0] >= values[2]).all() and (values[2] >= values[3]).all(), said)

    def test_inverse_link_is_finite(self) -> None:
        """``inverse_link`` is finite, and returns probabilities or scores for classifiers."""
        loss, _, raw = self.draw()
        for scale in (1.0, 30.0, 1e4):
            result = loss.inverse_link(raw * scale)
            said = f"inverse_link must be finite, also for raw · {scale:g}."
            ensure(np.isfinite(result).all(), said)
            said = "inverse_link must return shape (n, r')."
            ensure(len(result) == _N and result.ndim == 2, said)
            if self.classifier and not gives_probabilities(loss):
                said = "inverse_link must return one score per class."
                ensure(result.shape[1] == max(2, raw.shape[1]), said)
            elif self.classifier:
                ensure(
                    result.shape[1] == max(2, raw.shape[1])
                    and ((result >= 0) & (result <= 1)).all(),
                    "inverse_link must return one probability per class.",
                )
                said = "Probabilities must sum to 1."
                ensure_close(result.sum(axis=1), np.ones(_N), said, 1e-12)

    def test_leaf_values_are_the_best_constants(self) -> None:
        """``leaf_values`` are the best constants, and 0 for leaves without rows."""
        for weighted in (False, True):
            loss, target, raw = self.draw(weighted)
            if not loss.has_leaf_values:
                return
            raw = raw - 3  # so that the best constant of each leaf is far from 0
            leaves = np.random.default_rng(0).integers(-1, 4, size=_N).astype(np.int32)
            leaves[leaves == 2] = 3  # leaf 2 is empty
            values = loss.leaf_values(target, raw, leaves, 5, slice(0, raw.shape[1]))
            said = f"leaf_values must return shape (n_leaves, n_columns); got {values.shape}."
            ensure(values.shape == (5, raw.shape[1]), said)
            ensure((values[[2, 4]] == 0).all(), "The value of a leaf without rows must be 0.")
            for leaf in (0, 1, 3):
                rows = np.flatnonzero(leaves == leaf)
                self._check_leaf(loss, target.rows(rows), raw[rows], values[leaf])

    def _check_leaf(self, loss: Loss, target: Target, raw: Floats, value: Floats) -> None:
        lowest = _mean_value(loss, target, value, raw)
        said = "leaf_values must decrease the loss."
        ensure(lowest < _mean_value(loss, target, 0 * value, raw), said)
        if not self.best_leaves:
            return
        for direction in np.eye(len(value)):
            for shift in (-0.1, -1e-3, 1e-3, 0.1):
                near = _mean_value(loss, target, value + shift * direction, raw)
                ensure(near >= lowest - 1e-12, "leaf_values must be the best constants.")

    def test_leaf_values_of_some_columns_are_those_of_all(self) -> None:
        """``leaf_values`` of a column do not depend on the requested columns."""
        loss, target, raw = self.draw()
        if not loss.has_leaf_values:
            return
        leaves = np.random.default_rng(0).integers(0, 3, size=_N).astype(np.int32)
        whole = loss.leaf_values(target, raw, leaves, 3, slice(0, raw.shape[1]))
        for k in range(raw.shape[1]):
            part = loss.leaf_values(target, raw, leaves, 3, slice(k, k + 1))
            said = "leaf_values of a column must not depend on the requested columns."
            ensure_close(part, whole[:, k : k + 1], said)


def _columns(y: Any) -> Floats:
    y = np.asarray(y, dtype=np.float64)
    return y[:, None] if y.ndim == 1 else y


def _moved(raw: Floats, column: int, step: float) -> Floats:
    result = raw.copy()
    result[:, column] += step
    return result


def _mean_value(
    loss: Loss, target: Target, constant: Floats, raw: Floats | float = 0.0
) -> np.floating:
    moved = raw + np.broadcast_to(constant, (len(target.y), len(constant)))
    return np.average(loss.value(target, moved), weights=target.weight)

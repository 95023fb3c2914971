"""The rows of a report: validated, with predictions, weights and scores."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import mean_tweedie_deviance
from sklearn.utils.validation import check_is_fitted

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType, counted, shown
from hilboost.core.labels import take_labels
from hilboost.core.loss import Loss
from hilboost.core.plain_values import as_python
from hilboost.core.target import Target
from hilboost.losses.registry import gives_probabilities
from hilboost.model.fitted import FittedModel
from hilboost.model.row_marks import RowMarks
from hilboost.report.figures import (
    TARGET_LENGTH,
    Measured,
    class_scores,
    number_scores,
    of_target,
    score,
    scores_of_targets,
)
from hilboost.report.influence import mean_loss
from hilboost.report.regression import scores_of_rows
from hilboost.report.table import Columns, shortened
from hilboost.tables.arrays import frame_columns
from hilboost.training.data import in_order_of_groups
from hilboost.validation.groups import check_groups, number_groups
from hilboost.validation.offsets import check_offset, warn_without
from hilboost.validation.order import check_order
from hilboost.validation.survival import SurvivalLabels, check_at
from hilboost.validation.targets import check_length
from hilboost.validation.weights import check_weights

_DEVIANCES = {"poisson": "Poisson", "gamma": "gamma", "tweedie": "Tweedie"}
_LARGEST = 1e150  # the sum of squares of such numbers is finite


@dataclass(frozen=True)
class Asides:
    """Groups of a ranking, strata, entry and given times of survival, weights (n,), and offsets.

    As the user passed them; ``None`` if there are none.
    """

    groups: Any = None
    strata: Any = None
    entry: Any = None
    sample_weight: Any = None
    offset: Any = None
    times: ArrayLike | None = None

    @classmethod
    def of(cls, function: str, given: dict[str, Any]) -> Asides:
        """Take the keyword arguments of a function; unknown ones are errors of the function."""
        known = {one.name for one in fields(cls)}
        for name in given:
            if name not in known:
                raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        return cls(**given)

    def check(self, model: Any) -> None:
        """Refuse what the model does not have."""
        survival = model.fitted_.codec.kind == "survival"
        if self.sample_weight is not None and (survival or model.ranks_groups):
            raise InvalidParameter(
                "sample_weight is not supported by reports on rankings and survival times; omit it."
            )
        if model.ranks_groups and self.groups is None:
            raise InvalidParameter(
                "a report on a ranking requires the groups of the rows; pass groups=."
            )
        for name, given, belongs, to in (
            ("groups", self.groups, model.ranks_groups, "rankings"),
            ("strata", self.strata, survival, "survival models"),
            ("entry", self.entry, survival, "survival models"),
            ("times", self.times, survival, "survival models"),
            ("offset", self.offset, model.takes_offsets, "boosting on tables"),
        ):
            if given is not None and not belongs:
                raise InvalidParameter(f"{name} is only supported by {to}; omit it.")

    def labels(self, fitted: FittedModel, y: object) -> Any:
        """Return the labels as the codec of the model takes them."""
        if fitted.codec.kind != "survival":
            return y
        return SurvivalLabels(y, self.entry, self.strata)

    def horizons(self) -> Floats | None:
        """Return the times (k,) of the calibration of survival functions, if they are given."""
        return None if self.times is None else check_at(self.times)

    def names(self, n: int) -> NDArray[Any]:
        """Labels of the groups, sorted."""
        return np.unique(check_groups(self.groups, n))

    def arranged(
        self, model: Any, columns: Columns, raw: Floats, target: Target
    ) -> tuple[Columns, Floats, Target]:
        """Put the rows of each group of a ranking together; others keep their order."""
        if not model.ranks_groups:
            return columns, raw, target
        numbers = number_groups(self.groups, None, len(raw))
        order = np.argsort(numbers, kind="stable")
        raw, target = in_order_of_groups(raw, target, numbers)
        return columns.rows(order), np.ascontiguousarray(raw), target


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a report."""

    model: Any
    columns: Columns
    labels: Any  # as the user passed them
    raw: Floats  # (n, r) float64: raw predictions
    target: Target  # encoded labels, and weights

    @property
    def fitted(self) -> FittedModel:
        """Record of the fit."""
        return self.model.fitted_

    @property
    def codes(self) -> Floats:
        """Encoded labels, (n, c)."""
        return self.target.y

    @property
    def full_target_names(self) -> list[str]:
        """Names of the columns of numeric targets, as passed or in the fit, or their numbers."""
        numbers = self.fitted.codec.kind == "numbers"
        names = self.fitted.numbers.names if numbers else None
        several = map("target {}".format, range(self.codes.shape[1]))
        return list(map(str, frame_columns(self.labels) or names or several))

    @property
    def target_names(self) -> list[str]:
        """Names of numeric targets, short enough for a page."""
        return [shortened(name, TARGET_LENGTH) for name in self.full_target_names]

    @property
    def first_target(self) -> str | None:
        """Name of the first of several numeric targets."""
        several = self.fitted.codec.kind == "numbers" and self.codes.shape[1] > 1
        return self.target_names[0] if several else None

    @classmethod
    def of(cls, model: Any, X: object, y: object, asides: Asides) -> Rows:
        """Validate and predict; rows with zero weight are left out."""
        check_model(model)
        asides.check(model)
        check_order(X, y=y, **vars(asides))
        fitted: FittedModel = model.fitted_
        columns = Columns.of(X, fitted.schema.names)
        warn_without(asides.offset, fitted.beside_offsets)
        offset = check_offset(asides.offset, columns.n_rows)
        more = {} if offset is None else {"offset": offset}
        raw = model.predict_raw(columns.source, **more)
        if y is None:
            raise InvalidData("a report requires the true targets; pass y.")
        codes = fitted.encode_target(asides.labels(fitted, y), len(raw))
        check_length(codes, len(raw))
        weights = check_weights(asides.sample_weight, raw)
        if fitted.codec.kind == "numbers":
            _check_numbers(fitted.loss, codes if weights is None else codes[weights > 0])
        if weights is None:
            target = Target(codes, offset=offset)
            columns, raw, target = asides.arranged(model, columns, raw, target)
            return cls(model, columns, y, raw, target)
        kept = np.flatnonzero(weights)
        target = Target(codes, weights, offset=offset).rows(kept)
        columns = columns.weighted(weights).rows(kept)
        return cls(model, columns, take_labels(y, kept), raw[kept], target)

    @property
    def class_numbers(self) -> NDArray[np.intp]:
        """Numbers of the classes, (n,)."""
        return self.codes[:, 0].astype(np.intp)

    def means(self) -> tuple[Floats, Floats, int]:
        """Return predictions (n, c), baseline predictions (n, c), and the main output column."""
        loss = self.fitted.loss
        predicted = np.asarray(loss.inverse_link(self.raw))
        guess = self._guess()
        if guess is None:
            mean = np.average(predicted, axis=0, weights=self.columns.weights)
            guess = np.broadcast_to(mean, predicted.shape)
        levels = quantile_levels(loss)
        if not levels:
            return predicted, guess, 0
        return predicted, guess, int(np.argmin(np.abs(np.asarray(levels) - 0.5)))

    def class_guess(self) -> Floats:
        """Predict probabilities with the baseline, (n, k)."""
        guess = self._guess()
        if guess is not None:
            return guess
        weights, n_classes = self.columns.weights, len(self.fitted.classes)
        shares = np.bincount(self.class_numbers, weights, n_classes) / weights.sum()
        return np.broadcast_to(shares, (len(weights), n_classes))

    def _guess(self) -> Floats | None:
        """Predict with the baseline, the model without stages but with offsets, (n, c)."""
        fitted, target = self.fitted, self.target
        if not self.model.is_additive:
            return None
        start = fitted.model.initial_raw
        if target.offset is not None:
            return np.asarray(fitted.loss.inverse_link(target.starting_raw(start)))
        guess = np.asarray(fitted.loss.inverse_link(start[None]))
        return np.broadcast_to(guess, (len(self.raw), guess.shape[1]))

    def positive_index(self, label: object) -> int:
        """Index of the class that the user chose."""
        if label is None:
            return 1
        if self.fitted.codec.n_classes != 2:
            raise InvalidParameter("positive_class requires a model of two classes; omit it.")
        known = self.fitted.classes.tolist()
        if label not in known:
            raise InvalidParameter(
                f"positive_class={shown(label)} is not a class of the model; set it to "
                f"{known[0]!r} or {known[1]!r}."
            )
        return int(known.index(label))

    def probabilities(self, raw: Floats) -> Floats:
        """Predict probabilities, clipped to [0, 1] because of custom losses; else scores."""
        predicted: Floats = self.fitted.loss.inverse_link(raw)
        return np.clip(predicted, 0.0, 1.0) if gives_probabilities(self.fitted.loss) else predicted

    def scorer(self, positive: int) -> Measured:
        """Return a function that maps some rows to the scores of a model of numbers or classes."""
        fitted, raw, codes, weights = self.fitted, self.raw, self.codes, self.columns.weights
        if codes.shape[1] > 1:
            predicted, names = self.means()[0], self.full_target_names
            return lambda some: scores_of_targets(
                codes[some], predicted[some], weights[some], names
            )
        if fitted.codec.kind != "classes":
            (_, guess, k), more = self.means(), {}
            if fitted.loss.has_distribution:
                more = scores_of_rows(fitted.distribution_of(raw), codes[:, 0])
            return lambda some: [
                *_number_scores(fitted, codes[some], raw[some], weights[some], guess[some, k], k),
                *(
                    score(name, np.average(one[some], weights=weights[some]), None, "lower", says)
                    for name, (one, says) in more.items()
                ),
            ]
        numbers, proba, guess = self.class_numbers, self.probabilities(raw), self.class_guess()
        stated = gives_probabilities(fitted.loss)
        classes = [shortened(label, 30) for label in fitted.classes]
        return lambda some: class_scores(
            *(numbers[some], proba[some], guess[some], weights[some], stated, positive, classes)
        )

    def scores(self) -> list[dict[str, Any]]:
        """Compute all scores of numbers or classes, also of each target if there are several."""
        found = self.scorer(1)(slice(None))
        if self.codes.shape[1] == 1:
            return found
        predicted, guess, _ = self.means()
        for k, name in enumerate(self.full_target_names):
            known = ~np.isnan(self.codes[:, k])
            weights = self.columns.weights[known]
            y, mean, constant = (values[known, k] for values in (self.codes, predicted, guess))
            each = _mean_scores(self.fitted.loss, y, mean, constant, weights)
            found += [of_target(one, name) for one in each if one["key"] != "r2"]
        return found


def _check_numbers(loss: Loss, codes: Floats) -> None:
    """Check that targets (n, c) are known, within the support of the loss, and have squares."""
    nowhere = np.isnan(codes).all(axis=0)
    if nowhere.any():
        raise InvalidData(
            f"target {int(nowhere.argmax())} of y is missing in every row; pass rows in which it "
            "is known."
        )
    loss.check_rows(codes)
    largest = float(np.nanmax(np.abs(codes)))
    if largest > _LARGEST:
        raise InvalidData(
            f"y contains {largest:g}, whose square exceeds the range of float64; divide y by a "
            "unit, or remove such rows."
        )


def check_model(model: Any) -> None:
    """Refuse what no report can describe."""
    if not hasattr(model, "report_facts"):
        raise InvalidType(
            f"a report requires a hilboost estimator as the first argument; got {shown(model)}."
        )
    check_is_fitted(model)
    survival = model.fitted_.codec.kind == "survival"
    if model.loss_.couples_rows and not (model.ranks_groups or survival):
        raise InvalidType(
            f"reports support losses that couple rows only for rankings and survival times; "
            f"{type(model).__name__} has loss={type(model.loss_).__name__}."
        )


def _number_scores(
    fitted: FittedModel, y: Floats, raw: Floats, weights: Floats, guess: Floats, k: int
) -> list[dict[str, Any]]:
    """Compute scores of the prediction, or of the quantile nearest to the median."""
    predicted = np.asarray(fitted.loss.inverse_link(raw))[:, k]
    found = _mean_scores(fitted.loss, y[:, 0], predicted, guess, weights)
    if quantile_levels(fitted.loss):
        pinball = mean_loss(fitted, Target(y, weights), raw)
        says = "mean pinball loss, summed over all quantiles"
        found.insert(0, score("pinball loss", float(pinball), None, "lower", says))
    return found


def _mean_scores(
    loss: Any, y: Floats, predicted: Floats, guess: Floats, weights: Floats
) -> list[dict[str, Any]]:
    """Compute scores of predicted means (n,), with the deviance that the loss is."""
    scores = number_scores(y, predicted, guess, weights)
    kind = _DEVIANCES.get(loss.regressor_name)
    if kind is None:
        return scores
    with np.errstate(over="ignore"):
        own, of_guess = (  # twice the loss, as in scikit-learn
            mean_tweedie_deviance(y, one, sample_weight=weights, power=2 - loss.value_degree)
            for one in (predicted, guess)
        )
    says = "what the fit minimizes; 0 is best"
    return [score(f"mean {kind} deviance", own, of_guess, "lower", says), *scores]


def quantile_levels(loss: Loss) -> tuple[float, ...]:
    """Levels of the predicted quantiles; none for other predictions."""
    return () if loss.link is None else loss.link.levels


def plain(value: Any) -> Any:
    """Convert to JSON-compatible values; non-finite numbers become ``None``."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    value = as_python(value)
    return None if isinstance(value, float) and not np.isfinite(value) else value


_FEW_ROWS = 30


def cautions(rows: Rows, training: Columns | None) -> list[str]:
    """Say whether the rows are few, or training rows; ``training``: rows that the user passed."""
    n, found = len(rows.raw), []
    if n < _FEW_ROWS:
        found.append(f"Only {counted(n, 'row')}: the results are unreliable.")
    same_loss = has_training_loss(rows)
    if same_loss:
        found.append(
            "The loss on these rows equals the training loss, so they are most likely the "
            "training data and the results are too good. Use held-out data instead."
        )
    marks = rows.fitted.marks
    if marks is None and training is not None:
        marks = RowMarks.of(rows.model._checked(training.source))
    if marks is not None and not (same_loss and training is None):
        found += recurring(rows.model, rows.columns.source, marks)
    return found


def recurring(model: Any, X: Any, marks: RowMarks) -> list[str]:
    """Say that many rows occur in a training table, if they do."""
    X = model._checked(X)
    share = marks.leaked_share(X)
    told = (
        f"{share:.0%} of these {len(X)} rows also occur in the training data. If they are the same "
        "observations, the results are too good; use held-out data instead."
    )
    return [told] if share else []


def has_training_loss(rows: Rows) -> bool:
    """Whether the mean loss is that of the training rows."""
    history = rows.fitted.history
    if history is None or len(rows.raw) < 2:
        return False
    kept = min(rows.fitted.n_stages, len(history.train) - 1)
    mean = mean_loss(rows.fitted, rows.target, rows.raw)
    return bool(np.isclose(mean, history.train[kept], rtol=1e-7, atol=0))

"""The shell around the loop that all estimators share: checks, the fit's frame, raw predictions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hilboost.backends.team import available_cores
from hilboost.boosting import Member, Plan, Progress, checked_start
from hilboost.callbacks import Checkpoint
from hilboost.core.contracts import Callback, Loss
from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType, unknown_name
from hilboost.core.records import Floats, History, Target
from hilboost.estimators.checks import check_inputs, check_weights
from hilboost.estimators.fitting import Fit
from hilboost.estimators.sklearn_callbacks import CallbackSupportMixin, Relay, with_callbacks
from hilboost.learners.kernel_machine.expansion import MergedExpansions
from hilboost.losses.partly_known import PartlyKnown, of_known
from hilboost.model import AdditiveModel, mean_of
from hilboost.tables import Schema, without_unused_levels

_CELLS_WORTH_A_THREAD = 2**18


class Shell(CallbackSupportMixin, BaseEstimator):
    """Parameters are checked by scikit-learn, data here, once; a subclass builds the parts."""

    _loss_names: ClassVar[dict[str, Any]]
    _members: list[AdditiveModel] | None
    _can_resume = False
    _schema: Schema
    categorical_features: Any = "from_dtype"
    loss: Any
    n_jobs: int | None
    random_state: Any

    # What estimators differ in.

    @abstractmethod
    def _encode(self, y: Any, n: int, *, reset: bool) -> Floats:
        """Labels to a target array (n, c)."""

    @abstractmethod
    def _with_class_weights(self, target: Target) -> Target:
        """The target, its weights multiplied by those of the classes."""

    @abstractmethod
    def _named_loss(self, name: str) -> Loss:
        """A built-in loss."""

    @abstractmethod
    def _strata(self, target: Target) -> NDArray[Any] | None:
        """What a validation split keeps the proportions of."""

    @abstractmethod
    def _fit(
        self,
        X: Floats,
        target: Target,
        held_out: tuple[Floats, Target] | None,
        continued: Progress | None,
        callbacks: Sequence[Callback],
    ) -> None:
        """Boost on checked data and keep the model."""

    def _given_categories(self) -> Any:
        """Which columns hold categories, as the user says it."""
        return self.categorical_features

    def _takes_gaps(self) -> bool:
        """Whether some of several targets of a row may be missing."""
        return False

    def _takes_sparse(self) -> bool:
        """Whether the parameters call for a learner that takes sparse tables."""
        return False

    # Fit

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, data frame or sparse table (n, d)
            Inputs.  NaN is a missing value, which trees learn from and kernel machines refuse.
            Text is categories, as ``categorical_features`` says; trees take sparse tables.
        y : array-like (n,) or (n, c)
            Targets.  Of several, some may be NaN in a row: trees learn from the others, under
            losses that are sums over the targets (squared error, Poisson, gamma, Tweedie).
        sample_weight : array-like (n,), optional
            A weight of 2 counts as the row twice, and 0 leaves it out.
        X_val, y_val, sample_weight_val : array-like, optional
            Held-out data for early stopping, in place of a part of ``X``.  Giving them turns early
            stopping on unless ``early_stopping=False``.
        callbacks : sequence of callables
            Called with an :class:`~hilboost.core.records.Event` after every stage; one that
            returns ``True`` ends the fit.  Ready ones are in :mod:`hilboost.callbacks`.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            Parameters or data that cannot be used; the message says which and what to do.
        KeyboardInterrupt
            The fit was interrupted.  With at least one stage boosted, the estimator is fitted
            with the stages so far, and a warning says how many.
        """
        self._validate_params()
        if not self._can_resume and any(isinstance(c, Checkpoint) for c in callbacks):
            raise InvalidParameter(
                f"{type(self).__name__} cannot go on from a checkpoint; Checkpoint works with the "
                "trees of BoostingRegressor and BoostingClassifier. Leave it out."
            )
        if (X_val is None) != (y_val is None):
            raise InvalidData("X_val and y_val go together: give both or neither.")
        if sample_weight_val is not None and X_val is None:
            raise InvalidData("sample_weight_val needs X_val and y_val.")
        relay = None
        if hasattr(self, "_skl_callbacks"):
            relay = Relay(self, X=X, y=y, metadata={"sample_weight": sample_weight})
            callbacks = (*callbacks, relay)
        continued = self._progress_so_far()
        X = check_inputs(self, X, reset=continued is None)
        if y is None:
            raise InvalidData(
                f"requires y to be passed, but the target y is None: call "
                f"{type(self).__name__}.fit(X, y)."
            )
        encoded = self._encode(y, len(X), reset=continued is None)
        weight = check_weights(sample_weight, X)
        X, target = _without_zero_weights(X, self._with_class_weights(Target(encoded, weight)))
        if len(X) < len(encoded) and continued is None and self._schema.categories:
            X, self._schema = without_unused_levels(X, self._schema)
        self._check_target(target)
        held_out = None
        if X_val is not None:
            X_held = check_inputs(self, X_val, reset=False)
            y_held = self._encode(y_val, len(X_held), reset=False)
            held_out = _without_zero_weights(
                X_held, Target(y_held, check_weights(sample_weight_val, X_held))
            )
        self._fit(X, target, held_out, continued, callbacks)
        if relay is not None:
            relay.end()
        return self

    def _progress_so_far(self) -> Progress | None:
        if not getattr(self, "warm_start", False) or not hasattr(self, "model_"):
            return None
        if self._members is None:
            raise InvalidData(
                "warm_start: a model read from a file cannot be continued; set warm_start=False."
            )
        kept, history = self.n_estimators_, self.history_
        return Progress(
            [Member(model.start, stages=list(model.stages)) for model in self._members],
            train=list(history.train[: kept + 1]),
            validation=[] if history.validation is None else list(history.validation[: kept + 1]),
        )

    def _check_target(self, target: Target) -> None:
        """Refuse what no loss could learn from; by default nothing."""

    def _keep(self, plan: Plan, progress: Progress) -> None:
        kept = len(progress.members[0].stages)
        if plan.stopping is not None and progress.validation:
            kept = plan.stopping.best_stage(progress.validation)
        for member in progress.members:
            del member.stages[kept:]
        self.__dict__.update(self._with_stages(plan, progress))

    def _with_stages(self, plan: Plan, progress: Progress) -> dict[str, Any]:
        """The attributes of the model that the stages so far make."""
        members = [member.model() for member in progress.members]
        # Of nested machines several stages became one.
        timed = len(progress.seconds) == len(progress.train) - 1
        return {
            "_members": members,
            "model_": mean_of(members),
            "loss_": plan.loss.loss if isinstance(plan.loss, PartlyKnown) else plan.loss,
            "learner_": plan.learner,
            "n_estimators_": len(members[0].stages),
            "history_": History(
                np.array(progress.train),
                np.array(progress.validation) if progress.validation else None,
                np.array(progress.seconds) if timed else None,
            ),
        }

    def _started(
        self,
        X: Floats,
        target: Target,
        held_out: tuple[Floats, Target] | None,
        continued: Progress | None = None,
    ) -> Fit:
        """Loss, start value and seed, for targets that the loss can take."""
        held_y = [] if held_out is None else [held_out[1].y]
        loss = of_known(self._make_loss(), target.y, *held_y)
        loss.check(target)
        if held_out is not None:
            # Together with the training target: held-out counts may all be zero.
            loss.check(Target(np.concatenate([held_out[1].y, target.y])))
        start, seed = checked_start(loss, target), self._seed(continued)
        return Fit(loss, start, seed, X, target, held_out, self._strata(target))

    def _seed(self, continued: Progress | None) -> int:
        if continued is None:
            self._fitted_seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return self._fitted_seed

    def _make_loss(self) -> Loss:
        loss = self.loss
        if isinstance(loss, str):
            if loss not in self._loss_names:
                raise unknown_name("loss", loss, self._loss_names)
            return self._named_loss(loss)
        if isinstance(loss, type) and issubclass(loss, Loss):
            loss = loss()
        if not isinstance(loss, Loss):
            raise InvalidType(
                f"loss must be a name, a Loss object or a subclass of hilboost.Loss; got {loss!r}."
            )
        return loss

    def _n_threads(self, n_cells: int) -> int:
        if self.n_jobs is None:
            wanted = available_cores()
        elif self.n_jobs == 0:
            raise InvalidParameter("n_jobs == 0 has no meaning; use None or -1 for all cores.")
        elif self.n_jobs < 0:
            wanted = max(1, available_cores() + 1 + self.n_jobs)
        else:
            wanted = int(self.n_jobs)
        return max(1, min(wanted, 1 + n_cells // _CELLS_WORTH_A_THREAD))

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file, without pickle, for :func:`hilboost.load`.

        Parameters
        ----------
        path : str or Path

        Raises
        ------
        IncompatibleParts
            A part is of no kind that files hold; see :func:`hilboost.save`.
        OSError
            The file cannot be written; an old file of this name stays as it was.
        """
        from hilboost.estimators.files import save

        save(self, path)

    # Prediction

    def _checked(self, X: Any) -> Floats:
        """Inputs to predict for, of a fitted model."""
        check_is_fitted(self)
        return check_inputs(self, X, reset=False)

    def _raw(self, X: Any) -> Floats:
        X = self._checked(X)
        n_cells = len(X) * max(1, len(self.model_.stages), self._n_basis())
        return self.model_.predict_raw(X, self._n_threads(n_cells))

    def _staged_raw(self, X: Any) -> Iterator[Floats]:
        X = self._checked(X)
        n_cells = len(X) * max(1, self._n_basis())
        yield from self.model_.staged_raw(X, self._n_threads(n_cells))

    # Reports

    def report(
        self, X: Any, y: Any, path: str | Path | None = None, title: str | None = None
    ) -> Any:
        """A page about the fitted model on some rows: errors, important columns, parameters.

        Parameters
        ----------
        X : array-like (n, d)
            Rows such as the model was not fitted to.
        y : array-like (n,), (n, c), or sequence of n labels
            What is true of them.
        path : str or Path, optional
            HTML file to write, which needs nothing outside itself.
        title : str, optional

        Returns
        -------
        hilboost.report.page.Report
            Shows itself in a notebook; ``facts`` and ``html`` are what it consists of.

        Raises
        ------
        InvalidData, InvalidParameter
            ``y`` does not go with ``X``; ``path`` is not a file that can be made.

        Notes
        -----
        Cost: predictions for about 200,000 rows, most of them to find the important columns.
        """
        # By name: the room of reports lies above this one, which works without it.
        return import_module("hilboost.report").report(self, X, y, path, title=title)

    def report_facts(self, X: Any, y: Any) -> dict[str, Any]:
        """The facts of :meth:`report` as a plain dict, ready for JSON.

        Parameters
        ----------
        X : array-like (n, d)
        y : array-like (n,), (n, c), or sequence of n labels

        Returns
        -------
        dict
        """
        facts: dict[str, Any] = import_module("hilboost.report").facts(self, X, y)
        return facts

    def _n_basis(self) -> int:
        """Basis vectors of the kernel machines in the model, equal ones once."""
        sums = self.model_.summations()
        return sum(part.n_basis for part in sums if isinstance(part, MergedExpansions))


def _without_zero_weights(X: Floats, target: Target) -> tuple[Floats, Target]:
    """Rows of weight zero do not exist."""
    if target.weight is None or (target.weight > 0).all():
        return X, target
    rows = np.flatnonzero(target.weight > 0)
    return X[rows], target.rows(rows)

"""Base class of all estimators: validation, training, prediction and persistence."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hilboost.backends.threads import threads_for, threads_for_kernels
from hilboost.callbacks.checkpoint import checkpoint_among
from hilboost.callbacks.loggers import with_printer
from hilboost.core.callback import Callback, check_callbacks
from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.errors import InvalidColumn, InvalidParameter
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.estimators.fitted_properties import FittedProperties
from hilboost.estimators.preparation import FitArguments, FitContext, training_data
from hilboost.estimators.signatures import (
    ExplainedParameters,
    hide_offsets,
    public_fit,
    public_methods,
    public_prediction,
)
from hilboost.estimators.sklearn_callbacks import CallbackSupportMixin, Relay
from hilboost.model.codecs import TargetCodec
from hilboost.model.fitted import FittedModel
from hilboost.persistence.stored import StoredModel
from hilboost.tables.schema import Schema
from hilboost.training import fingerprints
from hilboost.training.continuation import Continuation
from hilboost.training.data import TrainingData
from hilboost.training.locations import train_in_turn
from hilboost.training.recipe import Recipe
from hilboost.training.train import TrainingResult
from hilboost.validation.inputs import Expected, check_inputs, is_plain
from hilboost.validation.offsets import offset_of


def division_of(model: object) -> str | None:
    """Return what several workers divide to fit a model; ``None`` for objects they cannot fit."""
    return model.divides if isinstance(model, BoostingEstimator) else None


@public_methods
class BoostingEstimator(FittedProperties, CallbackSupportMixin, ExplainedParameters):
    """Translates parameters into a training recipe and stores the result in ``fitted_``.

    scikit-learn validates the parameters, and this class validates the data once.  Subclasses
    define how labels are encoded and create the recipe.
    """

    is_additive: ClassVar[bool] = True
    """Whether the additive model ``model_`` makes the predictions."""

    is_tabular: ClassVar[bool] = False
    """Whether the estimator boosts learners on tables and resolves the parameters of trees."""

    divides: ClassVar[str | None] = None
    """Work that workers divide: "rows", or "kernel values" of rows that all of them have."""

    supported_by_workers: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "warm_start": (False,),
        "time_budget": (None,),
        "validation": ("auto", "random", "groups", "time"),
    }
    """Parameters to which several workers are limited, with their values, the default first."""

    supports_files: ClassVar[bool] = True
    """Whether model files support the estimator."""

    embeds_labels: ClassVar[bool] = False
    """Whether the encoding of labels is learned from all of them together, and not by rows."""

    classifier: ClassVar[str] = "BoostingClassifier"
    """Name of the estimator of the same family for classes."""

    takes_offsets: ClassVar[bool] = False
    """Whether a known part of the predictions can be passed to ``fit`` and to predictions."""

    ranks_groups: ClassVar[bool] = False
    """Whether predictions rank the rows of groups."""

    _kind: ClassVar[str]
    _merges_equal_rows: ClassVar[bool] = False
    _is_machine: ClassVar[bool] = False
    _resumes: ClassVar[bool] = False
    """Whether a fit can be saved to a checkpoint while it runs."""

    fitted_: FittedModel
    random_state: Any
    n_jobs: int | None

    # Parameters that some estimators have, and what the others do
    loss: Any = None
    categorical_features: Any = "from_dtype"
    validation: Any = "auto"
    validation_gap: Any = None
    warm_start: bool = False
    verbose: int | bool = 0

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Show only arguments that the class supports; scikit-learn reads signatures, too."""
        if not cls.takes_offsets:
            hide_offsets(cls)
        super().__init_subclass__(**arguments)

    # Methods that subclasses define or override

    @abstractmethod
    def _learn_codec(self, y: object, n: int) -> tuple[TargetCodec, Floats]:
        """Fit the encoding of the labels; return it with the encoded labels (n, c)."""

    @abstractmethod
    def _recipe(self, data: TrainingData, seed: int, continuation: Continuation | None) -> Recipe:
        """Create the training recipe for validated data."""

    @abstractmethod
    def _work(self, recipe: Recipe) -> int:
        """Number of array entries processed per stage, which determines the number of threads."""

    @abstractmethod
    def _parts(self, stored: StoredModel) -> tuple[Loss, Learner]:
        """Create the loss and the learner of a model read from a file."""

    def _for_workers(self) -> Self:
        """An estimator with the learner that several workers fit."""
        return self

    def _weighted(self, target: Target, codec: TargetCodec) -> Target:
        """Apply class weights to the target, if there are any."""
        return target

    def _check_targets(self, target: Target, codec: TargetCodec) -> None:
        """Let the loss check the targets of single rows, if it does."""

    def _arranged(self, X: Floats, target: Target, rows: FitArguments) -> tuple[Floats, Target]:
        """Put rows into the order that the loss requires; by default, they keep theirs."""
        return X, target

    def _labels_of(self, rows: FitArguments) -> Any:
        """The labels of rows as the codec takes them."""
        return rows.y

    def _categories(self) -> Any:
        """The categorical columns as specified by the user."""
        return self.categorical_features

    def _takes_missing_targets(self) -> bool:
        """Whether some of the targets of a row may be missing."""
        return False

    def _refuses_nan(self) -> str:
        """Say why missing inputs are rejected, and what to do; empty if they are accepted."""
        return ""

    def _reads_blocks(self) -> bool:
        """Whether the learner reads tables in blocks, so that they need not be copied."""
        return False

    def _check_callbacks(self, callbacks: Sequence[Callback]) -> None:
        """Reject callbacks that the estimator does not support."""
        if checkpoint_among(callbacks) is not None and not self._resumes:
            raise InvalidParameter(
                f"{type(self).__name__} does not support Checkpoint, which requires stages that "
                "are fitted one after the other; remove it from callbacks."
            )

    # Fit

    @public_fit
    def fit(
        self,
        X: object,
        y: object,
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
            Inputs.  NaN marks missing values, which need ``kernel="auto"``.  Text columns are
            categorical by default (see ``categorical_features``).
        y : array-like (n,) or (n, c)
            Targets, one or several numbers per row, or class labels.
        sample_weight : array-like (n,), optional
            A row with weight 2 is equivalent to two rows.  Rows with zero weight are ignored.
        groups, time : array-like (n,), optional
            Group of each row, for predictions of other groups, or time, numbers or dates, for
            predictions of later rows, by which kernel and λ are chosen; see ``validation``.
        X_val, y_val, sample_weight_val : array-like or dict, optional
            Validation data for early stopping; see :meth:`BoostingRegressor.fit`.
        callbacks : sequence of callables
            See :meth:`BoostingRegressor.fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            Invalid parameters or data.  The message names the problem and suggests a fix.
        KeyboardInterrupt
            See :meth:`BoostingRegressor.fit`.
        """
        held_out = FitArguments(X_val, y_val, sample_weight_val)
        rows = FitArguments(X, y, sample_weight, groups, time=time)
        return self._fit(rows, held_out, callbacks)

    def _fit(
        self, rows: FitArguments, held_out: FitArguments, callbacks: Sequence[Callback]
    ) -> Self:
        """Fit the model to the rows that the user passed."""
        self._validate_params()
        check_callbacks(callbacks)
        self._check_callbacks(callbacks)
        relay = None
        if hasattr(self, "_skl_callbacks"):
            relay = Relay(self, X=rows.X, y=rows.y, metadata={"sample_weight": rows.sample_weight})
            callbacks = (*callbacks, relay)
        before = self._continued()
        # No variable here keeps the encoded labels: the fit may replace them by smaller arrays.
        prepared = [training_data(self, rows, held_out, before)]
        marks, names = prepared[0].marks, prepared[0].schema.names
        held_by = fingerprints.of_dependence(prepared[0].target)
        try:
            result = self._train(prepared.pop(), FitContext(callbacks, before, relay))
        except InvalidColumn as error:
            raise error.named(names) from None
        self.fitted_ = replace(result.fitted, marks=marks, held_out_by=held_by)
        result.raise_interrupt()
        if relay is not None:
            relay.end()
        return self

    def _continued(self) -> FittedModel | None:
        """The fitted model to continue with ``warm_start=True``, if any."""
        if not self.warm_start or not self.__sklearn_is_fitted__():
            return None
        return self.fitted_.to_continue()

    def _expected(self, schema: Schema | None) -> Expected:
        """The properties that inputs must have."""
        return Expected(schema, self._categories(), refuses_nan=self._refuses_nan())

    def _train(self, data: TrainingData, context: FitContext) -> TrainingResult:
        """Train on validated data."""
        callbacks, before, relay = context.callbacks, context.before, context.relay
        checkpoint = checkpoint_among(callbacks)
        if checkpoint is not None and before is not None:
            raise InvalidParameter(
                "warm_start continues from the stages in memory, and Checkpoint from those in its "
                "file; set warm_start=False, or remove Checkpoint from callbacks."
            )
        continuation, keep = None if before is None else Continuation.of(before), None
        seed = self._seed() if before is None else before.seed
        if checkpoint is not None:
            from hilboost.training import checkpoints

            parameters = self.get_params(deep=False)
            continuation, keep = checkpoints.resumed(checkpoint, parameters, data, seed)
            seed = seed if continuation is None else continuation.seed
        recipe = self._recipe(data, seed, continuation)
        if checkpoint is not None:
            checkpoints.check_learner(recipe.config.learner)
        recipe = replace(recipe, config=replace(recipe.config, takes_snapshots=self.warm_start))
        del data
        n_threads = n_threads_of_rows = threads_for(self.n_jobs, self._work(recipe))
        if recipe.choices.kernel_part is not None:
            n_threads = max(n_threads, threads_for_kernels(self.n_jobs, len(recipe.data.X)))
        return train_in_turn(
            recipe,
            n_threads,
            with_printer(callbacks, self.verbose),
            continuation,
            keep,
            None if relay is None else relay.watch,
            n_threads_of_rows,
        )

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def __sklearn_is_fitted__(self) -> bool:
        """Whether the estimator is fitted."""
        return "fitted_" in vars(self)

    def save(self, path: str | Path, *, training_data: bool | None = None) -> None:
        """Save the fitted model to a single file, without pickle.  See :func:`hilboost.load`.

        Parameters
        ----------
        path : str or Path
        training_data : bool, optional
            Whether the file may contain training data; see :func:`hilboost.save`.

        Raises
        ------
        IncompatibleParts
            A component of the model cannot be stored in a file, or the file would contain training
            data, and ``training_data=False``; see :func:`hilboost.save`.
        OSError
            The file cannot be written.  An existing file of this name is left unchanged.
        """
        from hilboost.estimators.files import save

        save(self, path, training_data=training_data)

    @classmethod
    def load(cls, path: str | Path, trusted: Collection[str] = ()) -> Self:
        """Load a model of this class that :meth:`save` wrote.  See :func:`hilboost.load`.

        Parameters
        ----------
        path : str or Path
        trusted : list of str
            Custom classes that the file may import; see :func:`hilboost.load`.

        Returns
        -------
        estimator
            Fitted.

        Raises
        ------
        InvalidModelFile
            The file is damaged, or contains a model of another class.
        OSError
            The file cannot be read.
        """
        from hilboost.estimators.files import load_as

        return load_as(cls, path, trusted)

    def _complete(self) -> None:
        """Compute what a file should contain and the fit leaves for later: by default, nothing."""

    # Predictions

    def _checked(self, X: Any) -> Floats:
        """Check that the model is fitted and validate the inputs."""
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)  # raises; where it does not, it takes longer than one prediction
        schema = self.fitted_.schema
        return X if is_plain(self, X, schema) else check_inputs(self, X, self._expected(schema))[0]

    @public_prediction
    def predict_raw(self, X: object, offset: PerRow = None) -> Floats:
        """Predict in link space, before the inverse link of the loss.

        Parameters
        ----------
        X : array-like (n, d)
        offset : array-like (n,) or (n, r), optional
            Added to the prediction, by estimators whose ``fit`` has this parameter.

        Returns
        -------
        (n, r) float64
        """
        raw = self._raw(X)
        known = offset_of(offset, *raw.shape)
        return raw if known is None else raw + known

    def _raw_beside(self, X: object, offset: PerRow) -> Floats:
        """Return what ``predict_raw`` does; warn if the fit had offsets, but there are none now."""
        raw = self.predict_raw(X, offset)
        self.fitted_.warn_of_offsets(offset)
        return np.asarray(raw)

    def _raw(self, X: object) -> Floats:
        """Predictions (n, r) of the model alone."""
        X = self._checked(X)
        n_entries = len(X) * self.fitted_.model.cost_per_row
        try:
            return self.fitted_.predict_raw(X, threads_for(self.n_jobs, n_entries))
        except InvalidColumn as error:
            raise error.named(self.fitted_.schema.names) from None

    def _staged_raw(self, X: object, offset: PerRow = None) -> Iterator[Floats]:
        """Yield predictions in link space after each stage; an array may be reused."""
        known = None
        for stage, raw in enumerate(self._stages(X)):
            if stage == 0:
                known = offset_of(offset, *raw.shape)
                self.fitted_.warn_of_offsets(offset)
            yield raw if known is None else raw + known

    def _stages(self, X: object) -> Iterator[Floats]:
        """Yield predictions of the model alone after each stage; the same array is reused."""
        X = self._checked(X)
        n_entries = len(X) * self.fitted_.model.cost_per_row
        try:
            yield from self.fitted_.staged_raw(X, threads_for(self.n_jobs, n_entries))
        except InvalidColumn as error:
            raise error.named(self.fitted_.schema.names) from None

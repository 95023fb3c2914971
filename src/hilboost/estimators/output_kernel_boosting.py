"""Gradient boosting in the feature space of an output kernel (OKBoost)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.base import is_classifier
from sklearn.utils._param_validation import Interval, StrOptions

from hilboost.backends.team import Team
from hilboost.boosting import EarlyStopping, Plan, Progress, RowSampling
from hilboost.core.contracts import Callback, Learner, Loss, Rule
from hilboost.core.errors import InvalidParameter, InvalidType, unknown_name
from hilboost.core.records import Floats, Target
from hilboost.core.spaces import Embedding
from hilboost.estimators._kernel import Ending
from hilboost.estimators._output_kernel import BaseOutputKernel, changed
from hilboost.estimators.checks import (
    check_kernel,
    check_learner,
    learner_name,
    warn_of_light_weights,
)
from hilboost.estimators.fitting import boost_until_interrupted, pass_interrupt_on
from hilboost.estimators.kernel_regressor import KernelBoostingRegressor
from hilboost.estimators.printing import with_printer
from hilboost.learners.kernel_machine import (
    BlockLearner,
    FullLearner,
    SparseLearner,
    Workspace,
)
from hilboost.learners.tree import TreeLearner, VectorTreeLearner
from hilboost.learners.wrapped import WrappedLearner
from hilboost.losses import SquaredError
from hilboost.rules import Shrinkage

_AUTO = StrOptions({"auto"})
_LEARNERS = ("ok3", "ok3-et", "kernel")
_OF_TREES = ("max_splits", "min_samples_leaf", "max_features", "sketch")
_OF_THE_LOOP = (
    "n_estimators",
    "learning_rate",
    "subsample",
    "early_stopping",
    "validation_fraction",
    "n_iter_no_change",
)
_SKETCHED_ABOVE = 32
_SKETCH = 16


@dataclass(frozen=True)
class _PreimageError(SquaredError):
    """Squared error whose value is that of the decoded labels: what early stopping may watch."""

    embedding: Embedding
    way: str

    def value(self, target: Target, raw: Floats) -> Floats:
        """Half the squared distance between the points of the labels and of the decoded ones."""
        decoded = self.embedding.encode(self.embedding.decode(raw, self.way))
        return super().value(target, decoded)


class OutputKernelBoostingRegressor(BaseOutputKernel):
    """Boosting of any base learner on the points of an output space (OKBoost).

    Each stage fits what is left of the outputs' points by least squares; labels are pre-images of
    the sum.  With ``output="linear"`` it is ordinary least-squares boosting of vectors.

    Parameters
    ----------
    output : str, OutputSpace, kernel or callable
        The kind of labels: ``"linear"``, ``"gaussian"`` (images), ``"label_set"``, ``"ranking"``,
        ``"distribution"``, ``"string"``, ``"precomputed"`` and so on
        (``hilboost.outputs.OUTPUT_NAMES``), an output space with parameters of its own, or an
        output kernel.
    learner : {"ok3-et", "ok3", "kernel"}, Learner or scikit-learn regressor
        Output kernel trees with random cuts or with the best ones, a kernel machine on the inputs
        (or a ``KernelBoostingRegressor`` with parameters of its own, those of its loop left out),
        or any regressor.
    n_estimators : int or "auto"
        Stages: 500 of trees, 20 of kernel machines (until they have converged), 100 of others.
    learning_rate : float or "auto"
        Shrinkage ``ν`` (G2007, eq. 9): 0.02 for trees, 1 for kernel machines, 0.1 for others.
    max_splits : int
        Splits of a tree, ``J``.  This and the next three are for learners ``"ok3"`` and
        ``"ok3-et"``; others refuse them.
    min_samples_leaf : float
        Smallest number of rows (sum of weights) in a leaf of a tree.
    max_features : float in (0, 1], "sqrt" or "auto"
        Part of the columns that a node may choose from: the square root of their number with
        random cuts, else all.
    sketch : int, None or "auto"
        Trees choose splits by a random projection of the residuals to so many columns.
        ``"auto"`` is 16 for the best cuts of more than 32 outputs, else ``None``.
    subsample : float in (0, 1]
        Part of the rows that a stage learns from.
    decode : str
        The way to pre-images, one of ``output_.ways``; ``"auto"`` is the first of these.
    early_stopping : bool or "auto"
        Stop by the loss of held-out rows; ``"auto"`` does so where ``X_val`` is given.
    metric : {"embedding", "preimage"}
        What early stopping watches: the distance in the output space, or that of the pre-images,
        which are then computed for all rows in every stage.
    validation_fraction : float
        Part of the rows held out by ``early_stopping=True``.
    n_iter_no_change : int
        Stages without improvement before the fit stops.
    random_state : int, RandomState or None
    n_jobs : int or None
        Threads; ``None`` is all cores.  The model is the same with any number.
    verbose : int or bool

    Attributes
    ----------
    output_ : Embedding
        The output space as fitted.
    model_ : AdditiveModel
    n_estimators_ : int
    history_ : History
        Half the mean squared distance in the output space after every stage.
    n_features_in_ : int

    Notes
    -----
    Boosting on an explicit factor of the output Gram matrix gives the same trees and predictions
    as the Gram-matrix updates of G2007 (Algorithms 3 and 4), at O(n r) in place of O(n²) a stage.

    References
    ----------
    P. Geurts, L. Wehenkel, F. d'Alché-Buc, *Gradient boosting for kernelized output spaces*, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from hilboost import OutputKernelBoostingRegressor
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> ranks = np.where(X < 0.5, [[1, 2, 3]], [[3, 1, 2]])
    >>> model = OutputKernelBoostingRegressor("ranking", random_state=0).fit(X, ranks)
    >>> model.predict([[0.1], [0.9]])
    array([[1, 2, 3],
           [3, 1, 2]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseOutputKernel._parameter_constraints,
        "n_estimators": [_AUTO, Interval(Integral, 1, None, closed="left")],
        "learning_rate": [_AUTO, Interval(Real, 0, 2, closed="right")],
        "max_splits": [Interval(Integral, 1, None, closed="left")],
        "min_samples_leaf": [Interval(Real, 0, None, closed="neither")],
        "max_features": [
            Interval(Real, 0, 1, closed="right"),
            StrOptions({"sqrt", "auto"}),
        ],
        "sketch": [_AUTO, Interval(Integral, 1, None, closed="left"), None],
        "subsample": [Interval(Real, 0, 1, closed="right")],
        "early_stopping": [_AUTO, "boolean"],
        "metric": [StrOptions({"embedding", "preimage"})],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        output: Any = "linear",
        *,
        learner: Any = "ok3-et",
        n_estimators: int | str = "auto",
        learning_rate: float | str = "auto",
        max_splits: int = 20,
        min_samples_leaf: float = 1,
        max_features: float | str = "auto",
        sketch: int | str | None = "auto",
        subsample: float = 1.0,
        decode: str = "auto",
        early_stopping: bool | str = "auto",
        metric: str = "embedding",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 50,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.output = output
        self.learner = learner
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_splits = max_splits
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.sketch = sketch
        self.subsample = subsample
        self.decode = decode
        self.early_stopping = early_stopping
        self.metric = metric
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _make_loss(self) -> Loss:
        if self.metric == "embedding":
            return SquaredError()
        way = self.output_.ways[0] if self.decode == "auto" else self.decode
        return _PreimageError(self.output_, way)

    def _fit(
        self,
        X: Floats,
        target: Target,
        held_out: tuple[Floats, Target] | None,
        continued: Progress | None,
        callbacks: Sequence[Callback],
    ) -> None:
        began = time.monotonic()
        fit = self._started(X, target, held_out)
        if self.early_stopping is True and held_out is None:
            fit = fit.hold_out(self.validation_fraction)
        early = self.early_stopping is not False and fit.held_out is not None
        if isinstance(self.learner, KernelBoostingRegressor):
            check_kernel(self.learner.kernel, self._given_categories(), self._schema)
        learner = self._make_learner(len(fit.X), target.y.shape[1], self._schema.categories)
        name = f"learner {learner_name(self.learner)}"
        check_learner(learner, self._schema, name, "set learner='kernel'")
        if isinstance(learner, VectorTreeLearner | TreeLearner):
            warn_of_light_weights(fit.target.weight, learner.min_samples_leaf)
        n_threads = self._n_threads(fit.target.y.size * fit.X.shape[1])
        data = learner.prepare(fit.X, fit.target.weight, fit.seed, n_threads)
        try:
            ending = [Ending(data, began, None)] if isinstance(data, Workspace) else []
            n_stages, rate = self._pace(learner)
            rules: list[Rule] = [Shrinkage(rate)] if rate != 1 else []
            plan = Plan(
                loss=fit.loss,
                learner=learner,
                rules=rules,
                n_stages=n_stages,
                sampling=RowSampling(self.subsample),
                stopping=EarlyStopping(self.n_iter_no_change, 0.0) if early else None,
                callbacks=(*with_printer(callbacks, self.verbose), *ending),
                seed=fit.seed,
            )
            begun = fit.begin(plan, n_threads)
            progress, validation = begun.progress, begun.validation
            with Team(n_threads) as team:
                boost_until_interrupted(plan, data, fit.target, progress, team, validation)
        finally:
            learner.close(data)
        self._keep(plan, progress)
        pass_interrupt_on(progress, self.n_estimators_)

    def _given_categories(self) -> Any:
        machine = self.learner
        if isinstance(machine, KernelBoostingRegressor):
            return machine.categorical_features
        return super()._given_categories()

    def _make_learner(self, n: int, r: int, categorical: tuple[int, ...] = ()) -> Learner:
        learner = self.learner
        if isinstance(learner, str):
            if learner not in _LEARNERS:
                raise unknown_name("learner", learner, _LEARNERS)
            if learner != "kernel":
                return self._trees(learner == "ok3-et", r)
            learner = KernelBoostingRegressor()
        elif not isinstance(learner, Learner) and (
            isinstance(learner, type)
            or not (hasattr(learner, "fit") and hasattr(learner, "predict"))
            or is_classifier(learner)
        ):
            raise InvalidType(
                "learner must be 'ok3', 'ok3-et', 'kernel', a Learner or a scikit-learn "
                f"regressor; got {learner!r}."
            )
        ignored = changed(self, _OF_TREES)
        if ignored:
            raise InvalidParameter(
                f"{', '.join(ignored)} is about the trees of 'ok3' and 'ok3-et' and does nothing "
                f"with learner={self.learner!r}; leave it out, or set learner to one of these."
            )
        if isinstance(learner, Learner):
            return learner
        if isinstance(learner, KernelBoostingRegressor):
            return _kernel_stages(learner, n, categorical)
        return WrappedLearner(learner, together=True)

    def _trees(self, random_cuts: bool, r: int) -> VectorTreeLearner:
        features: float | str = "sqrt" if random_cuts else 1.0
        sketch = None
        if isinstance(self.sketch, str):
            sketch = _SKETCH if r > _SKETCHED_ABOVE and not random_cuts else None
        elif self.sketch is not None:
            sketch = int(self.sketch)
        return VectorTreeLearner(
            max_splits=self.max_splits,
            min_samples_leaf=self.min_samples_leaf,
            max_features=features if self.max_features == "auto" else self.max_features,
            random_cuts=random_cuts,
            sketch=sketch,
        )

    def _pace(self, learner: Learner) -> tuple[int, float]:
        """Number of stages and learning rate."""
        if isinstance(learner, VectorTreeLearner | TreeLearner):
            n_stages, rate = 500, 0.02
        elif isinstance(learner, FullLearner | SparseLearner | BlockLearner):
            n_stages, rate = 20, 1.0
        else:
            n_stages, rate = 100, 0.1
        if self.n_estimators != "auto":
            n_stages = int(self.n_estimators)
        return n_stages, rate if self.learning_rate == "auto" else float(self.learning_rate)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        trees = isinstance(self.learner, VectorTreeLearner | TreeLearner)
        tags.input_tags.allow_nan = trees or (
            isinstance(self.learner, str) and self.learner.startswith("ok3")
        )
        return tags


def _kernel_stages(
    machine: KernelBoostingRegressor, n: int, categorical: tuple[int, ...]
) -> Learner:
    """What a stage of a kernel machine is, for a loop that is not its own."""
    machine._validate_params()
    if machine.loss != "squared_error":
        raise InvalidParameter(
            "stages are fitted by squared error in the output space; give a "
            f"KernelBoostingRegressor with loss='squared_error', not {machine.loss!r}."
        )
    ignored = changed(machine, _OF_THE_LOOP)
    if ignored:
        raise InvalidParameter(
            f"{', '.join(ignored)} of the KernelBoostingRegressor given as learner does nothing; "
            "set it on the OutputKernelBoostingRegressor, or leave it out."
        )
    return machine._make_learner(n, categorical)

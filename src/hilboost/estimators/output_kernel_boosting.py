"""Gradient boosting in the feature space of an output kernel (OKBoost)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY
from functools import partial
from numbers import Real
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Self

from sklearn.utils._param_validation import Interval

from hilboost.backends.threads import threads_for
from hilboost.core.errors import InvalidParameter, unknown_name
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.plain_values import as_list, is_auto, is_name
from hilboost.estimators import parameter_types as types
from hilboost.estimators.kernel_boosting import kernel_stages
from hilboost.estimators.kernel_regressor import KernelBoostingRegressor
from hilboost.estimators.losses import distance_loss
from hilboost.estimators.output_kernel import OutputKernelEstimator
from hilboost.estimators.signatures import changed, with_parameters
from hilboost.learners.ridge import RidgeLearner
from hilboost.losses.squared_error import SquaredError
from hilboost.model.codecs import TargetCodec
from hilboost.persistence.require import require
from hilboost.persistence.stored import StoredModel
from hilboost.training.categories import check_kernel, nan_refused_by
from hilboost.training.continuation import Continuation
from hilboost.training.data import TrainingData
from hilboost.training.learner_choice import best_learner, can_compare
from hilboost.training.recipe import Recipe
from hilboost.training.recipes.output_kernels import (
    MetricLoss,
    PreimageLoss,
    output_recipe,
    vector_trees,
)
from hilboost.training.recipes.table_learners import learner_of, listed, mixed

_BY_NAME: Mapping[str, Callable[[Mapping[str, Any]], Any]] = MappingProxyType(
    {
        "ok3": lambda parameters: vector_trees(parameters, False),
        "extra_trees": lambda parameters: vector_trees(parameters, True),
        "kernel": lambda _: KernelBoostingRegressor(),
        "linear": lambda _: RidgeLearner(),
    }
)
_LEARNERS, _TREES = tuple(_BY_NAME), ("ok3", "extra_trees")
_COMPARED = ("extra_trees", "kernel")
_STAGES_COMPARED = 100
_ALIASES = {"ok3-et": "extra_trees"}  # the name of G2007
_ALIASES_IN_LISTS = {"tree": "extra_trees"}  # lists suit the estimators for tables, too
_OF_TREES = ("max_splits", "min_samples_leaf", "max_features", "sketch")


@with_parameters
class OutputKernelBoostingRegressor(OutputKernelEstimator):
    """Gradient boosting in the feature space of an output kernel (OKBoost).

    Each stage fits a base learner to the residuals of the embedded outputs by least squares.
    Predicted labels are the pre-images of the sum of all stages.  With ``output="linear"``, this is
    ordinary least-squares boosting for vector targets.

    Parameters
    ----------
    output : str, OutputSpace, kernel or callable, default="linear"
        Type of the labels: ``"linear"``, ``"gaussian"`` (images), ``"label_set"``, ``"ranking"``,
        ``"distribution"``, ``"string"``, ``"precomputed"`` and so on (see
        ``hilboost.outputs.OUTPUT_NAMES``), an output space instance, or an output kernel.
    loss : {"squared_error", "huber", "absolute_error"}, Loss or Loss class, \
default="squared_error"
        Loss of the distance ``d = |φ(y) - F(x)|`` in the output space.  Under ``"huber"`` and
        ``"absolute_error"``, outlying labels matter less: they grow with ``d`` instead of its
        square.  ``"huber"`` is ``d² / 2`` up to the 0.9 quantile of the distances in each stage;
        ``Huber(alpha=0.7)`` takes another quantile.  A custom loss of one target must declare
        ``symmetric = True``; its residual is then ``d``.
    learner : {"auto", "extra_trees", "ok3", "kernel", "linear"}, Learner, scikit-learn regressor \
or list of these, default="auto"
        Base learner.  ``"extra_trees"`` and ``"ok3"`` are output kernel trees with random splits
        and with the best splits, ``"kernel"`` is a kernel machine on the inputs, and ``"linear"``
        is ridge regression.  ``"auto"`` takes ``"extra_trees"`` or ``"kernel"``, whichever has the
        smaller error on held-out rows; ``learner_`` tells which one.  It takes ``"extra_trees"`` if
        values are missing, if a parameter of trees is set, with fewer than 100 or more than 20,000
        rows.  Pass a ``KernelBoostingRegressor`` to set the parameters of the kernel machine; the
        parameters of its boosting loop must have their defaults.  Any other regressor is also
        accepted.  With a list, each stage is fitted by the learner that decreases the loss most on
        held-out rows, see ``learners_``; ``"tree"`` in a list means ``"extra_trees"``.
    n_estimators : int or "auto", default="auto"
        Number of stages.  ``"auto"`` is 500 for trees, 20 for kernel machines (or until they
        converge), and 100 for other learners.
    learning_rate : float or "auto", default="auto"
        Shrinkage ``ν`` (G2007, eq. 9).  ``"auto"`` is 1 for kernel machines, and
        ``10 / n_estimators``, at most 1, for trees and other learners.
    max_splits : int, default=20
        Maximum number of splits per tree, ``J``.  This and the next three parameters apply only to
        the learners ``"ok3"`` and ``"extra_trees"``; setting them for others raises an error, and
        for ``"auto"`` selects ``"extra_trees"``.
    min_samples_leaf : float, default=1
        Minimum number of rows (sum of weights) per leaf.
    max_features : float in (0, 1], "sqrt" or "auto", default="auto"
        Fraction of the columns considered at each node.  ``"auto"`` considers the square root of
        the number of columns with random splits, and all columns otherwise.
    sketch : int or None, default=None
        Number of columns of a random projection of the residuals that trees use to select splits,
        which is faster with many outputs.  ``None`` uses all outputs, as G2007 does.
    subsample : float in (0, 1], default=1.0
        Fraction of the rows used to fit each stage.
    categorical_features : "from_dtype", array-like of str, int or bool, or None, \
default="from_dtype"
        Category columns: by dtype, or besides text columns by name, by index, or as a
        mask; ``None`` for no column.  Trees split on subsets of their levels, and kernel machines
        compare levels.  A ``KernelBoostingRegressor`` passed as ``learner`` has its own
        ``categorical_features``.
    decode : str, default="auto"
        Decoding method that computes pre-images, one of ``output_.ways``.  ``"auto"`` is the one
        that serves ``metric``, or the first of these.
    early_stopping : bool or "auto", default="auto"
        Whether to stop based on the loss on held-out rows.  ``"auto"`` stops early only if
        ``X_val`` is given.
    metric : str, default="embedding"
        The result of :meth:`score`: ``"embedding"`` is the fraction of explained variance of the
        embedded outputs, ``"preimage"`` the same with the points of the predicted labels; a metric
        of the output space, one of ``output_.metrics()``, such as ``"f1"`` for label sets,
        ``"kendall"`` for rankings or ``"edit"`` for strings, is the mean over the predicted labels.
        Such a metric also selects the decoding method.
        Early stopping monitors the loss of the distance in the output space under ``"embedding"``,
        that of the distance to the predicted labels under ``"preimage"``, and minus the metric
        otherwise (``"preimage"`` where points do not determine labels: strings, graphs, and rows of
        numbers with a kernel).  All but the first decode all rows in each stage.
    validation_fraction : float, default=0.1
        Fraction of the rows held out with ``early_stopping=True``.
    validation : {"auto", "random", "groups", "time"} or scikit-learn splitter, default="auto"
        Which rows are held out together, for early stopping, for the choice between the learners of
        ``learner="auto"``, and by kernel machines for the choice of kernel and λ; see
        :class:`BoostingRegressor`.
    validation_gap : float, timedelta or None, default=None
        See :class:`BoostingRegressor`.
    n_iter_no_change : int, default=50
        Number of stages without improvement after which training stops.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Number of threads.  ``None`` means all cores.  The model does not depend on it.
    verbose : int or bool, default=0

    Attributes
    ----------
    output_ : Embedding
        The fitted output space.
    model_ : AdditiveModel
    n_estimators_ : int
    history_ : History
        Mean loss after each stage; half the mean squared distance under ``"squared_error"``.
    n_features_in_ : int

    Notes
    -----
    Boosting on an explicit factor of the output Gram matrix gives the same trees and predictions
    as the Gram-matrix updates of G2007 (Algorithms 3 and 4), but costs O(n r) instead of O(n²) per
    stage.

    Under another loss ``ℓ(d)``, the negative gradient is the residual times ``ℓ'(d) / d``.  The
    start value is the geometric median of the embedded labels (absolute error) or their M-estimate
    of location.  Trees take the geometric median of the residuals in each leaf, and under other
    losses than the absolute error one step from there (Friedman 2001, Algorithms 3 and 4).  Kernel
    machines take steps of iteratively reweighted least squares, and other regressors one length for
    all outputs.  The part of a label that the factor of the Gram matrix omits counts in ``d``.
    With ``output="linear"`` and one target, this is ``BoostingRegressor`` under the same loss.

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

    _resumes = True
    embeds_labels = True
    supported_by_workers: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "validation": ("auto", "random"),
        "learner": ("extra_trees", "ok3", "ok3-et", "kernel", "auto"),
        "loss": ("squared_error", SquaredError),
    }
    _learner_names = _LEARNERS
    output: Any = "linear"
    _: KW_ONLY
    loss: Annotated[str | Loss | type[Loss], str, Loss, type] = "squared_error"
    learner: Any = "auto"
    n_estimators: types.CountOrAuto = "auto"
    learning_rate: Annotated[float | str, types.AUTO, Interval(Real, 0, 2, closed="right")] = "auto"
    max_splits: types.Count = 20
    min_samples_leaf: types.Positive = 1
    max_features: types.ShareRootOrAuto = "auto"
    sketch: types.CountOrNone = None
    subsample: types.Share = 1.0
    categorical_features: types.Columns = "from_dtype"
    decode: types.Text = "auto"
    early_stopping: types.FlagOrAuto = "auto"
    metric: types.Text = "embedding"
    validation_fraction: types.Part = 0.1
    validation: types.HeldOut = "auto"
    validation_gap: types.Gap = None
    n_iter_no_change: types.Count = 50
    random_state: types.RandomState = None
    n_jobs: types.Jobs = None
    verbose: types.Verbose = 0

    @property
    def divides(self) -> str:  # type: ignore[override]
        """Trees learn from rows that are divided among workers, kernel machines from all rows."""
        return "kernel values" if is_name(self.learner, "kernel") else "rows"

    def _for_workers(self) -> Self:
        return self.set_params(learner=_COMPARED[0]) if is_auto(self.learner) else self

    def _make_loss(self, codec: TargetCodec) -> Loss:
        return distance_loss(self.loss)

    def _measures_outside(self) -> bool:
        return not distance_loss(self.loss).quadratic

    def _make_metric(self, loss: Loss, data: TrainingData) -> Loss | None:
        """The loss by which stages are compared, if it is not that of the points."""
        if self.metric == "embedding":
            return None
        codec = data.codec.of_structures()
        embedding = codec.embedding
        metric, way = self._named_metric(embedding), self._way(embedding)
        points = data.target.y[:1, : codec.span_codes.shape[1]]
        if metric is None or embedding.labels_of(points) is None:
            return PreimageLoss(loss, embedding, way)
        return MetricLoss(loss, embedding, way, metric.agreement)

    def _recipe(self, data: TrainingData, seed: int, continuation: Continuation | None) -> Recipe:
        machine = self._machine()
        if machine is not None:
            check_kernel(machine.kernel, self._categories(), data.schema)
        if continuation is None:
            chosen = self._chosen(data, seed)
        else:
            chosen = self._learner_of(continuation.kernel_stages)
        return self._recipe_of(chosen, data, seed, {})

    def _recipe_of(
        self, learner: object, data: TrainingData, seed: int, settings: dict[str, Any]
    ) -> Recipe:
        """Create the recipe for a learner other than ``"auto"``; a comparison has settings."""
        made = self._make_learner(learner, len(data.X), data.schema.categories)
        loss = distance_loss(self.loss)
        metric = None if settings else self._make_metric(loss, data)
        parameters = self.get_params(deep=False) | {"learner": learner} | settings
        return output_recipe(parameters, made, loss, data, seed, metric)

    def _chosen(self, data: TrainingData, seed: int) -> Any:
        """The learner, which a comparison on held-out rows chooses for ``"auto"``."""
        if not is_auto(self.learner):
            return self.learner
        if changed(self, _OF_TREES) or not can_compare(data):
            return _COMPARED[0]
        paced = not (is_auto(self.n_estimators) and is_auto(self.learning_rate))
        shorter = {} if paced else {"n_estimators": _STAGES_COMPARED}

        def recipe_of(name: str, rows: TrainingData) -> Recipe:
            less = shorter if name == _COMPARED[0] else {}
            return self._recipe_of(name, rows, seed, {"early_stopping": False, **less})

        distance = "squared_error" if distance_loss(self.loss).quadratic else "absolute_error"
        return best_learner(
            {name: partial(recipe_of, name) for name in _COMPARED},
            distance_loss(distance),
            data,
            seed,
            threads_for(self.n_jobs, data.target.y.size * data.X.shape[1]),
        )

    def _learner_of(self, stages: str | None) -> Any:
        """The learner of a fitted model, by the kind of its kernel stages, if there are any."""
        if not is_auto(self.learner):
            return self.learner
        return _COMPARED[0] if stages is None else _COMPARED[1]

    def _work(self, recipe: Recipe) -> int:
        return int(recipe.data.target.y.size * recipe.data.X.shape[1])

    def _parts(self, stored: StoredModel) -> tuple[Loss, Learner]:
        self._check_decode(stored.codec.of_structures().embedding)
        require(stored.stages is None or not self._grows_trees(), "stages")
        chosen = self._learner_of(stored.stages)
        learner = self._make_learner(chosen, 1, stored.schema.categories, stored.stages)
        return distance_loss(self.loss), learner

    def _machine(self) -> KernelBoostingRegressor | None:
        """The kernel machine passed as the only learner, if any."""
        given = listed(self.learner)
        only = given[0] if len(given) == 1 else None
        return only if isinstance(only, KernelBoostingRegressor) else None

    def _categories(self) -> Any:
        machine = self._machine()
        if machine is None:
            return super()._categories()
        if not is_name(self.categorical_features, "from_dtype"):
            raise InvalidParameter(
                "categorical_features has no effect with a KernelBoostingRegressor as learner, "
                "which has its own; set it there."
            )
        return machine.categorical_features

    def _grows_trees(self) -> bool:
        """Whether all learners are trees by name."""
        return all(_names_trees(one) for one in as_list(self.learner))

    def _make_learner(
        self, learner: object, n: int, categorical: tuple[int, ...], stages: str | None = None
    ) -> Learner:
        given = listed(learner)
        ignored = [] if any(_names_trees(one) for one in given) else changed(self, _OF_TREES)
        if ignored:
            raise InvalidParameter(
                f"{', '.join(ignored)} applies only to the learners 'ok3' and 'extra_trees' and "
                f"has no effect with learner={learner!r}; remove it, or use one of these learners."
            )
        aliases = _ALIASES if given[0] is learner else _ALIASES | _ALIASES_IN_LISTS
        several = len(listed(self.learner)) > 1

        def learner_from(one: object) -> Learner:
            found = self._named_learner(one, aliases) if isinstance(one, str) else one
            made = learner_of(found, ("auto", *_LEARNERS), together=True)
            of_machine = kernel_stages(self, found, n, categorical, stages, several)
            return made if of_machine is found else of_machine

        return mixed(given, learner_from)

    def _named_learner(self, name: str, aliases: Mapping[str, str]) -> Any:
        """The learner of a name, or a kernel machine that is not fitted."""
        name = aliases.get(name, name)
        if name not in _BY_NAME:
            raise unknown_name("learner", name, ("auto", *_LEARNERS))
        return _BY_NAME[name](self.get_params())

    def _refuses_nan(self) -> str:
        return nan_refused_by(listed(self.learner), "extra_trees")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        allowed = is_auto(self.learner) or self._grows_trees()
        if isinstance(self.learner, Learner):
            allowed = self.learner.capabilities.takes_missing_values
        tags.input_tags.allow_nan = allowed
        return tags


def _names_trees(learner: object) -> bool:
    """Whether it is a name or an alias of trees, or unknown, which is refused later."""
    return isinstance(learner, str) and (learner in _TREES or learner not in ("auto", *_LEARNERS))

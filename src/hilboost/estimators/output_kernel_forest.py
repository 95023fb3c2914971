"""Output kernel trees, alone and as forests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

from sklearn.utils._param_validation import Interval, StrOptions

from hilboost.backends.threads import threads_for
from hilboost.boosting import RowSampling
from hilboost.core.callback import Callback
from hilboost.core.dtypes import Floats
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.estimators.output_kernel import OutputKernelEstimator
from hilboost.estimators.sklearn_callbacks import Relay
from hilboost.losses import SquaredError
from hilboost.model.codecs import OutputCodec, TargetCodec
from hilboost.model.fitted import FittedModel
from hilboost.persistence.stored import StoredModel
from hilboost.training.data import TrainingData
from hilboost.training.forest import train_forest
from hilboost.training.recipe import Continuation, Recipe
from hilboost.training.recipes.output_kernels import forest_trees
from hilboost.training.train import TrainingResult

_OF_TREES: dict[str, list[Any]] = {
    **OutputKernelEstimator._parameter_constraints,
    "splitter": [StrOptions({"best", "random"})],
    "max_splits": [Interval(Integral, 1, None, closed="left"), None],
    "max_depth": [Interval(Integral, 1, None, closed="left"), None],
    "min_samples_leaf": [Interval(Real, 0, None, closed="neither")],
    "max_features": [Interval(Real, 0, 1, closed="right"), StrOptions({"sqrt"})],
    "sketch": [Interval(Integral, 1, None, closed="left"), None],
}


class OutputKernelTreeRegressor(OutputKernelEstimator):
    """One regression tree on the points of an output space (OK3: Geurts, Wehenkel and d'Alché-Buc).

    Leaves predict the mean of their outputs' points in the space; labels are then the nearest
    pre-images.

    Parameters
    ----------
    output : str, OutputSpace, kernel or callable
        The kind of labels: ``"linear"``, ``"gaussian"``, ``"label_set"``, ``"ranking"``,
        ``"precomputed"`` and so on (``hilboost.outputs.OUTPUT_NAMES``), an output space with
        parameters of its own, or an output kernel.
    splitter : {"best", "random"}
        The best cut of every column, or one drawn at random (extra-trees).
    max_splits : int or None
        Largest number of splits; the node of largest total variance is split first.
    max_depth : int or None
    min_samples_leaf : float
        Smallest number of rows (sum of weights) in a leaf.
    max_features : float in (0, 1] or "sqrt"
        Part of the columns that a node may choose from.
    sketch : int or None
        Choose splits by a random projection of the outputs to so many columns.
    decode : str
        The way to pre-images, one of ``output_.ways``; ``"auto"`` is the first of these.
    random_state : int, RandomState or None
    n_jobs : int or None
        Threads; ``None`` is all cores.  The model is the same with any number.

    Attributes
    ----------
    output_ : Embedding
        The output space as fitted.
    model_ : AdditiveModel
    n_features_in_ : int

    Notes
    -----
    Cost O(n d r depth) for r dimensions of the output space; memory O(leaves · r).

    References
    ----------
    P. Geurts, L. Wehenkel, F. d'Alché-Buc, *Kernelizing the output of tree-based methods*, 2006.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _OF_TREES

    def __init__(
        self,
        output: Any = "linear",
        *,
        splitter: str = "best",
        max_splits: int | None = None,
        max_depth: int | None = None,
        min_samples_leaf: float = 1,
        max_features: float | str = 1.0,
        sketch: int | None = None,
        decode: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.output = output
        self.splitter = splitter
        self.max_splits = max_splits
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.sketch = sketch
        self.decode = decode
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _n_trees(self) -> int:
        return 1

    def _sampling(self) -> RowSampling:
        return RowSampling()

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # type: ignore[override]
        """Fit the trees.

        Parameters
        ----------
        X : array-like (n, d)
            Inputs.  NaN is a missing value, which trees learn from.
        y : sequence of n labels
            Of the kind that ``output`` takes: rows of numbers, sets, rankings, strings, a Gram
            matrix and so on.
        sample_weight : array-like (n,), optional
            A weight of 2 counts as the row twice, and 0 leaves it out.  A Gram matrix keeps its
            size all the same, and predictions its numbers.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            Parameters or data that cannot be used; the message says which row and what to do.
        """
        return super().fit(X, y, sample_weight)

    def _train(
        self,
        data: TrainingData,
        callbacks: Sequence[Callback],
        before: FittedModel | None,
        relay: Relay | None,
    ) -> TrainingResult:
        n_trees, parameters = self._n_trees(), self.get_params(deep=False)
        n_threads = threads_for(self.n_jobs, data.target.y.size * n_trees)
        return TrainingResult(
            train_forest(
                forest_trees(parameters),
                SquaredError(),
                data,
                self._seed(),
                n_trees,
                self._sampling(),
                type(self).__name__,
                n_threads,
            )
        )

    def _recipe(self, data: TrainingData, seed: int, continuation: Continuation | None) -> Recipe:
        raise AssertionError("forests are not boosted")

    def _work(self, recipe: Recipe) -> int:
        raise AssertionError("forests are not boosted")

    def _parts(
        self, codec: TargetCodec, n_outputs: int, stored: StoredModel
    ) -> tuple[Loss, Learner]:
        assert isinstance(codec, OutputCodec)
        self._check_decode(codec.embedding)
        return SquaredError(), forest_trees(self.get_params(deep=False))

    def _staged_raw(self, X: Any) -> Iterator[Floats]:
        """The mean of the first trees, one more each time."""
        for k, raw in enumerate(super()._staged_raw(X), start=1):
            yield raw * (self.fitted_.n_stages / k)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class OutputKernelForestRegressor(OutputKernelTreeRegressor):
    """The mean of many output kernel trees: extra-trees, or bagging.

    Parameters
    ----------
    output : str, OutputSpace, kernel or callable
        As in :class:`OutputKernelTreeRegressor`.
    n_estimators : int
    splitter : {"random", "best"}
        With ``"random"`` and ``bootstrap=False`` these are extra-trees, with ``"best"`` and
        ``bootstrap=True`` it is bagging.
    bootstrap : bool
        Every tree learns from rows drawn with replacement.
    max_splits, max_depth, min_samples_leaf : optional
        As in :class:`OutputKernelTreeRegressor`.
    max_features : float in (0, 1], "sqrt" or "auto"
        Part of the columns that a node may choose from: by default the square root of their number
        with random cuts, all of them with the best ones (bagging of G2007).
    sketch, decode, random_state, n_jobs : optional
        As in :class:`OutputKernelTreeRegressor`.

    Attributes
    ----------
    output_ : Embedding
    model_ : AdditiveModel
    n_estimators_ : int
    n_features_in_ : int

    Notes
    -----
    Cost O(T n d r depth) for T trees; ``max_features="sqrt"`` puts √d in place of d.
    Leaves hold points of the output space: memory O(T · leaves · r), and whole trees have up to as
    many leaves as rows; ``max_splits``, ``max_depth`` and ``min_samples_leaf`` make it less.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_OF_TREES,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_features": [Interval(Real, 0, 1, closed="right"), StrOptions({"sqrt", "auto"})],
        "bootstrap": ["boolean"],
    }

    def __init__(
        self,
        output: Any = "linear",
        *,
        n_estimators: int = 100,
        splitter: str = "random",
        bootstrap: bool = False,
        max_splits: int | None = None,
        max_depth: int | None = None,
        min_samples_leaf: float = 1,
        max_features: float | str = "auto",
        sketch: int | None = None,
        decode: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.output = output
        self.n_estimators = n_estimators
        self.splitter = splitter
        self.bootstrap = bootstrap
        self.max_splits = max_splits
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.sketch = sketch
        self.decode = decode
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _n_trees(self) -> int:
        return self.n_estimators

    def _sampling(self) -> RowSampling:
        return RowSampling(bootstrap=self.bootstrap)

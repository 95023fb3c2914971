"""Output kernel trees, alone and as forests."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from hilboost.backends.team import Team
from hilboost.boosting import Progress, RowSampling
from hilboost.core.contracts import Callback
from hilboost.core.records import Floats, Stage, Target
from hilboost.estimators._output_kernel import BaseOutputKernel
from hilboost.estimators.checks import check_learner, warn_of_light_weights
from hilboost.learners.tree import VectorTreeLearner
from hilboost.model import AdditiveModel


class _Forest(BaseOutputKernel):
    """The mean of independent trees."""

    splitter: str
    max_splits: int | None
    max_depth: int | None
    min_samples_leaf: float
    max_features: float | str
    sketch: int | None
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseOutputKernel._parameter_constraints,
        "splitter": [StrOptions({"best", "random"})],
        "max_splits": [Interval(Integral, 1, None, closed="left"), None],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "min_samples_leaf": [Interval(Real, 0, None, closed="neither")],
        "max_features": [Interval(Real, 0, 1, closed="right"), StrOptions({"sqrt"})],
        "sketch": [Interval(Integral, 1, None, closed="left"), None],
    }

    @abstractmethod
    def _n_trees(self) -> int:
        """How many."""

    @abstractmethod
    def _sampling(self) -> RowSampling:
        """What each tree learns from."""

    def _make_learner(self) -> VectorTreeLearner:
        max_features, random_cuts = self.max_features, self.splitter == "random"
        if max_features == "auto":
            max_features = "sqrt" if random_cuts else 1.0
        return VectorTreeLearner(
            max_splits=self.max_splits,
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            max_features=max_features,
            random_cuts=random_cuts,
            sketch=self.sketch,
        )

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

    def _fit(
        self,
        X: Floats,
        target: Target,
        held_out: tuple[Floats, Target] | None,
        continued: Progress | None,
        callbacks: Sequence[Callback],
    ) -> None:
        warn_of_light_weights(target.weight, self.min_samples_leaf)
        learner = self._make_learner()
        instead = "boost with learner='kernel' of OutputKernelBoostingRegressor"
        check_learner(learner, self._schema, type(self).__name__, instead)
        n_trees, sampling, seed = self._n_trees(), self._sampling(), self._seed(None)
        n_threads = self._n_threads(target.y.size * n_trees)
        data = learner.prepare(X, target.weight, seed, n_threads)
        several = n_trees >= n_threads

        def tree(number: int) -> Stage:
            rng = np.random.default_rng((seed, number))
            sample = sampling.draw(target, None, rng)
            team = Team(1) if several else data.team
            return Stage((learner.fit_tree(data, target.y, sample, rng, team).part,))

        try:
            numbers = range(n_trees)
            trees = data.team.map(tree, numbers) if several else [tree(k) for k in numbers]
        finally:
            learner.close(data)
        stages = tuple(stage.scaled(1 / n_trees) for stage in trees)
        self.model_ = AdditiveModel(np.zeros(target.y.shape[1]), stages)
        self._members = None
        self.loss_ = self._make_loss()
        self.learner_ = learner
        self.n_estimators_ = n_trees

    def _staged_raw(self, X: Any) -> Iterator[Floats]:
        """The mean of the first trees, one more each time."""
        for k, raw in enumerate(super()._staged_raw(X), start=1):
            yield raw * (self.n_estimators_ / k)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class OutputKernelTreeRegressor(_Forest):
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


class OutputKernelForestRegressor(_Forest):
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
        **_Forest._parameter_constraints,
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

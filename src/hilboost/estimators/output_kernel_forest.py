"""Output kernel trees and forests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Any, Self

from hilboost.backends.threads import threads_for
from hilboost.boosting.sampling import RowSampling
from hilboost.core.dtypes import Floats, PerRow
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.estimators import parameter_types as types
from hilboost.estimators.output_kernel import OutputKernelEstimator
from hilboost.estimators.preparation import FitArguments, FitContext
from hilboost.estimators.signatures import public_fit, with_parameters
from hilboost.losses.squared_error import SquaredError
from hilboost.persistence.stored import StoredModel
from hilboost.training.data import TrainingData
from hilboost.training.recipes.output_kernels import forest_trees, train_forest
from hilboost.training.train import TrainingResult


@with_parameters
class OutputKernelTreeRegressor(OutputKernelEstimator):
    """Output kernel regression tree (OK3 of Geurts, Wehenkel and d'Alché-Buc).

    Each leaf predicts the mean of its embedded outputs.  Predicted labels are the nearest
    pre-images.

    Parameters
    ----------
    output : str, OutputSpace, kernel or callable, default="linear"
        Type of the labels: ``"linear"``, ``"gaussian"``, ``"label_set"``, ``"ranking"``,
        ``"precomputed"`` and so on (see ``hilboost.outputs.OUTPUT_NAMES``), an output space
        instance, or an output kernel.
    splitter : {"best", "random"}, default="best"
        Whether to use the best split of each column, or a random one (extra-trees).
    max_splits : int or None, default=None
        Maximum number of splits.  The node with the largest total variance is split first.
    max_depth : int or None, default=None
    min_samples_leaf : float, default=1
        Minimum number of rows (sum of weights) per leaf.
    max_features : float in (0, 1] or "sqrt", default=1.0
        Fraction of the columns considered at each node.
    categorical_features : "from_dtype", array-like of str, int or bool, or None, \
default="from_dtype"
        Category columns: by dtype, or besides text columns by name, by index, or as a
        mask; ``None`` for no column.  Trees split on subsets of their levels.
    sketch : int or None, default=None
        Number of columns of the random projection of the outputs that is used to select splits.
    decode : str, default="auto"
        Decoding method that computes pre-images, one of ``output_.ways``.  ``"auto"`` is the one
        that serves ``metric``, or the first of these.
    metric : str, default="embedding"
        The result of :meth:`score`: ``"embedding"`` is the fraction of explained variance of the
        embedded outputs, ``"preimage"`` the same with the points of the predicted labels; a metric
        of the output space, one of ``output_.metrics()``, such as ``"f1"`` for label sets,
        ``"kendall"`` for rankings or ``"edit"`` for strings, is the mean over the predicted labels.
        Such a metric also selects the decoding method.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Number of threads.  ``None`` means all cores.  The model does not depend on it.

    Attributes
    ----------
    output_ : Embedding
        The fitted output space.
    model_ : AdditiveModel
    n_features_in_ : int

    Notes
    -----
    With r dimensions of the output space, a fit costs O(n d r depth) and O(leaves · r) memory.

    References
    ----------
    P. Geurts, L. Wehenkel, F. d'Alché-Buc, *Kernelizing the output of tree-based methods*, 2006.
    """

    output: Any = "linear"
    _: KW_ONLY
    splitter: types.Splitter = "best"
    max_splits: types.CountOrNone = None
    max_depth: types.CountOrNone = None
    min_samples_leaf: types.Positive = 1
    max_features: types.ShareOrRoot = 1.0
    categorical_features: types.Columns = "from_dtype"
    sketch: types.CountOrNone = None
    decode: types.Text = "auto"
    metric: types.Text = "embedding"
    random_state: types.RandomState = None
    n_jobs: types.Jobs = None

    def _n_trees(self) -> int:
        return 1

    def _sampling(self) -> RowSampling:
        return RowSampling()

    @public_fit
    def fit(self, X: object, y: object, sample_weight: PerRow = None) -> Self:  # type: ignore[override]
        """Fit the trees.

        Parameters
        ----------
        X : array-like (n, d)
            Inputs.  NaN marks missing values, which trees support.
        y : sequence of n labels
            Labels of the type given by ``output``: rows of numbers, sets, rankings, strings, a
            Gram matrix and so on.
        sample_weight : array-like (n,), optional
            A row with weight 2 counts twice.  Rows with zero weight are ignored, but a Gram matrix
            keeps its size, and predicted indices refer to all of its rows.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            Invalid parameters or data.  The message names the row and suggests a fix.
        """
        return self._fit_some(FitArguments(X, y, sample_weight), FitArguments(None, None), ())

    def _train(self, data: TrainingData, context: FitContext) -> TrainingResult:
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
                n_threads,
            )
        )

    def _parts(self, stored: StoredModel) -> tuple[Loss, Learner]:
        self._check_decode(stored.codec.of_structures().embedding)
        return SquaredError(), forest_trees(self.get_params(deep=False))

    def _stages(self, X: object) -> Iterator[Floats]:
        """Yield the mean of the first k trees for k = 1, 2, …"""
        for k, raw in enumerate(super()._stages(X), start=1):
            yield raw * (self.fitted_.n_stages / k)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


@with_parameters
class OutputKernelForestRegressor(OutputKernelTreeRegressor):
    """Forest of output kernel trees: extra-trees or bagging.

    Predictions are the mean of the predictions of all trees.

    Parameters
    ----------
    output : str, OutputSpace, kernel or callable, default="linear"
        See :class:`OutputKernelTreeRegressor`.
    splitter : {"random", "best"}, default="random"
        ``"random"`` with ``bootstrap=False`` gives extra-trees, and ``"best"`` with
        ``bootstrap=True`` gives bagging.
    max_splits, max_depth, min_samples_leaf : optional
        See :class:`OutputKernelTreeRegressor`.
    max_features : float in (0, 1], "sqrt" or "auto", default="auto"
        Fraction of the columns considered at each node.  ``"auto"`` considers the square root of
        the number of columns with random splits, and all columns with best splits (bagging of
        G2007).
    categorical_features, sketch, decode, metric, random_state, n_jobs : optional
        See :class:`OutputKernelTreeRegressor`.
    n_estimators : int, default=100
        Number of trees.
    bootstrap : bool, default=False
        Whether each tree is fitted to rows drawn with replacement.

    Attributes
    ----------
    output_ : Embedding
    model_ : AdditiveModel
    n_estimators_ : int
    n_features_in_ : int

    Notes
    -----
    With T trees, a fit costs O(T n d r depth); ``max_features="sqrt"`` replaces d by √d.  Leaves
    store points of the output space, so the model needs O(T · leaves · r) memory.  Fully grown
    trees have up to as many leaves as rows.  ``max_splits``, ``max_depth`` and
    ``min_samples_leaf`` reduce the memory.
    """

    _: KW_ONLY
    n_estimators: types.Count = 100
    splitter: types.Splitter = "random"
    bootstrap: types.Flag = False
    max_features: types.ShareRootOrAuto = "auto"

    def _n_trees(self) -> int:
        return self.n_estimators

    def _sampling(self) -> RowSampling:
        return RowSampling(bootstrap=self.bootstrap)

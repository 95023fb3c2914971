"""Gradient boosting for regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY

from sklearn.base import RegressorMixin

from hilboost.core.loss import Loss
from hilboost.estimators import parameter_types as types
from hilboost.estimators.number_predictions import NumberPredictions
from hilboost.estimators.signatures import with_parameters
from hilboost.estimators.table_boosting import TableBoosting


@with_parameters
class BoostingRegressor(NumberPredictions, RegressorMixin, TableBoosting):
    """Gradient boosting for regression, with one or several targets.

    Parameters
    ----------
    loss : str, Loss, Loss class or callable, default="squared_error"
        ``"squared_error"``, ``"absolute_error"``, ``"huber"``, ``"quantile"``, ``"poisson"``,
        ``"gamma"``, ``"tweedie"``, a distribution for :meth:`predict_distribution` (``"normal"``,
        ``"laplace"``, ``"student_t"``, ``"mixture_of_normals"``, ``"lognormal"``,
        ``"gamma_shape"``, ``"weibull"``, ``"negative_binomial"``, ``"zero_inflated_poisson"``,
        ``"beta"``, or a continuous one of ``scipy.stats``, such as ``scipy.stats.t(df=4)``), a
        custom :class:`hilboost.Loss`, or a function of ``y`` and ``raw`` that returns the gradient
        and the hessian of each row.  Several threads call losses and metrics of your own at once,
        unless ``n_jobs=1``.
    learner : str, scikit-learn regressor, Learner or list of these, default="auto"
        Base learner that is fitted to the gradients: histogram trees (``"tree"``), sparse kernel
        machines (``"kernel"``), ridge regression (``"linear"``), clones of a given regressor, or a
        custom learner.  ``"auto"`` fits trees, and adds a kernel machine, which contains training
        rows, if this decreases the loss on held-out rows: see ``parts_`` and the guide on the
        automatic learner.  With a list, each stage is fitted by the learner that decreases the loss
        most on held-out rows, see ``learners_``.
    learning_rate : float or "auto", default="auto"
        Shrinkage factor applied to the contribution of each stage.
    n_estimators : int or "auto", default="auto"
        Number of boosting stages, or the maximum number with early stopping.
    max_leaf_nodes : int, "auto" or None, default="auto"
        Maximum number of leaves per tree.  ``None`` means no limit.  This and the other parameters
        of trees apply to the learners ``"tree"`` and ``"auto"`` only.
    max_depth : int or None, default=None
        Maximum number of splits on the path from the root to a leaf.
    growth : {"auto", "best_first", "symmetric"}, default="auto"
        ``"best_first"`` splits the leaf of the largest gain next.  ``"symmetric"`` grows by levels:
        all nodes of a level are split on the same column at the same value.  Such trees are more
        regular, with up to 64 leaves by default.  They do not support constraints and do not split
        on levels of categories, which are target encoded.  ``"auto"`` is ``"symmetric"`` for
        rankings and survival times, and ``"best_first"`` for other targets.
    min_samples_leaf : float or "auto", default="auto"
        Minimum number of rows per leaf.  With sample weights, the minimum sum of weights.
    min_hessian : float, default=0.001
        Minimum sum of Hessians per leaf, counting sample weights as repeated rows.
    l2_regularization : float or "auto", default="auto"
        L2 penalty that is added to the Hessian of each leaf.  For the Poisson, gamma and Tweedie
        losses, Hessians and gains are computed for a target scaled to mean 1.
    min_gain : float, default=0
        Minimum gain required to make a split.
    max_features : float or "auto", default="auto"
        Fraction of the columns considered at each node.
    max_features_per_tree : float, default=1
        Fraction of the columns available to each tree.
    max_bins : int, default=255
        Maximum number of bins per column, not counting the bin for missing values.
    subsample : float or "auto", default="auto"
        Fraction of the rows used to fit each stage.
    bootstrap : bool, default=False
        Whether to draw these rows with replacement.
    monotonic_cst : array-like (d,) of int, dict of str or int to int, or None, default=None
        Monotonicity constraint of each column, or of columns by name or index: 1 for a
        non-decreasing prediction, -1 for a non-increasing one, and 0 for no constraint.  The
        constraint applies to all outputs, between rows where the column is not missing.
    interaction_cst : {"pairwise", "no_interactions"}, sequence of sets of int or str, or None, \
default=None
        Groups of columns that may interact.  Each path of a tree uses columns of a single group.
        Columns that appear in no group form an additional group.  "pairwise" allows all pairs of
        columns, and "no_interactions" puts each column in a group of its own.
    categorical_features : "from_dtype", sequence of names or column indices, mask, or None, \
default="from_dtype"
        Categorical columns.  By default, columns with a text or categorical dtype.  A list or mask
        selects columns besides text columns, which are always categorical; with ``None``, none is,
        and text is an error.  Levels not seen in ``fit`` go to the larger side of a split, or are
        treated as an average level.
    line_search : bool or "auto", default="auto"
        Whether to optimize the step length of each stage.  "auto" does so for all learners except
        trees.
    early_stopping : bool or "auto", default="auto"
        Whether to stop when the loss on held-out rows no longer improves, and keep the best stage.
    cv_folds : int or "auto", default="auto"
        How rows are held out for early stopping without ``X_val``.  1 holds out
        ``validation_fraction`` of the rows.  K > 1 fits K models in parallel, each without a
        different fold, stops all of them at the stage with the lowest loss on the held-out folds,
        and averages them.  Every row is then used for training.
    validation_fraction : float or None, default=0.1
        Fraction of the rows that is held out with ``cv_folds=1``.  With ``None`` and ``cv_folds`` 1
        or "auto", no rows are held out, and early stopping watches the training loss; ``tol`` then
        decides when its decrease is too small.
    validation : {"auto", "random", "groups", "time"} or scikit-learn splitter, default="auto"
        Which rows are held out together, also by trial fits, target encoding and the calibration of
        intervals.  ``"groups"`` holds out whole groups, ``"time"`` the latest rows, which several
        folds divide into blocks: each model learns from all rows before its block.  "auto" does
        either if ``groups`` or ``time`` is passed to ``fit``.  A splitter with disjoint held-out
        rows, such as ``GroupKFold(5)``, replaces ``cv_folds``; it gets the rows in order of time.
    validation_gap : float, timedelta or None, default=None
        Time before each block of held-out rows whose rows are left out, in the unit of ``time``, or
        a number of days or a timedelta if these are dates.
    n_iter_no_change : int or "auto", default="auto"
        Number of stages without improvement after which training stops.
    tol : float, default=0
        Minimum improvement, as a fraction of the initial loss.
    time_budget : float or None, default=None
        Seconds for the fit, without the time to compile or load code.  With a limit, automatic
        parameters depend on the speed of the machine: the learning rate increases, and fewer
        models, settings and centers of a kernel machine are tried, so that the model is good after
        this time.  A ``FitWarning`` says if the time sufficed for too few stages.
    eval_metric : str, Metric, list of these, or None, default=None
        Metrics that are computed on the held-out rows after each stage (``history_.metrics``).  The
        first one decides about early stopping; ``None`` means the loss.  ``"rmse"``, ``"mse"``,
        ``"mae"``, ``"mape"``, ``"r2"``, the names of scikit-learn's scorers for these, ``"crps"``,
        ``"log_score"`` and ``"interval_score"`` of distributions, a :class:`hilboost.Metric`, or a
        :class:`hilboost.metrics.FunctionMetric`.  A metric is NaN at stages where it is undefined,
        such as a correlation with the constant of stage 0.
    warm_start : bool, default=False
        Whether ``fit`` adds stages to the existing model instead of starting over.  Lists of
        learners and kernel machines must have it in the first fit, too, which keeps their state.
    device : str or None, default=None
        GPU that grows trees with scalar leaves, such as ``"cuda"`` or ``"cuda:1"`` (requires
        numba-cuda), or the PyTorch device of ``learner="kernel"``.  A GPU grows bit-for-bit
        the same trees as the processor.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Maximum number of threads.  ``None`` and -1 mean all cores.  Small data sets use fewer
        threads.  The model is bit-for-bit identical for any number of threads.
    verbose : int, default=0
        1 prints every tenth stage, 2 every stage.
    n_shards : int or "auto", default=1
        Number of shards.  The rows are divided at random into shards of equal size, and the stages
        learn from them in turn: stage t from shard t modulo ``n_shards``.  Unlike ``subsample``,
        this saves time on large tables.  The training loss in ``history_`` is then that of the
        shard whose turn is next.  ``subsample`` and ``min_samples_leaf`` refer to the rows of a
        shard.  "auto" starts with up to 16 shards, from 500,000 rows on, and joins them when trees
        begin to fit the noise of a shard.
    multi_output : {"separate", "shared"}, default="separate"
        Whether to grow one tree per output, or one tree with vector-valued leaves for all outputs.
    sketch : int or None, default=None
        Number of columns of the random projection of the gradients on which shared trees are
        grown.  ``None`` means no projection.
    target_encoding : bool or "auto", default="auto"
        Whether categorical columns are target encoded, that is, replaced by the mean target of
        each level and of each combination of levels of two columns.  "auto" encodes columns with
        more than 32 levels, and all categorical columns if trees are shared.  Trees split on the
        levels of the other columns directly.
    quantile : float or sequence of float, default=0.5
        Quantile level or levels for ``loss="quantile"``.  A single model predicts all levels
        without crossing, and ``predict`` returns one column per level.

    Attributes
    ----------
    model_ : AdditiveModel
    history_ : History
        Mean loss on the training and validation rows, first for the initial constant and then
        after each stage.
    n_estimators_ : int
        Number of stages in the model.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Defined only if ``X`` has column names.
    feature_importances_ : (d,) ndarray
    learners_ : StageLearners
        The learner of each stage (``stages``) and the number of stages of each learner
        (``counts``).  Defined only for models of several learners.
    resolved_ : ResolvedParameters
        Values of the parameters that may be ``"auto"``, as the fit used them, such as
        ``resolved_.learning_rate``.  ``resolved_.fill(model.get_params())`` are all parameters
        with these values.
    parts_ : dict of str to ModelPart
        With ``learner="auto"``, the weight, the gain with its standard error, and the seconds of
        the trees (``"tree"``) and of the kernel machine (``"kernel"``).

    Notes
    -----
    Parameters set to ``"auto"`` depend on the number of rows and columns; see the guide on
    defaults.  A stage with trees costs O(n d log(leaves)) additions.

    References
    ----------
    Friedman, *Greedy function approximation: a gradient boosting machine*, 2001, Algorithms 1–4.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from hilboost import BoostingRegressor
    >>> X, y = make_friedman1(500, random_state=0)
    >>> model = BoostingRegressor(random_state=0).fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 0.8)
    True
    """

    divides = "rows"

    loss: str | Loss | type[Loss] = "squared_error"
    _: KW_ONLY
    n_shards: types.CountOrAuto = 1
    multi_output: types.MultiOutput = "separate"
    sketch: types.CountOrNone = None
    target_encoding: types.FlagOrAuto = "auto"
    quantile: float | Sequence[float] = 0.5

"""Sparse kernel ridge regression."""

from __future__ import annotations

from sklearn.base import RegressorMixin

from hilboost.estimators.number_predictions import NumberPredictions
from hilboost.estimators.signatures import with_parameters
from hilboost.estimators.sparse_kernel import SparseKernelMachine


@with_parameters
class SparseKernelRidge(NumberPredictions, RegressorMixin, SparseKernelMachine):
    """Sparse kernel ridge regression.

    A subset of the rows serves as basis vectors, and the weights are optimal on all rows.  The
    model minimizes ``½ Σ_i w_i (y_i - ȳ - f(x_i))² + ½ λ |f|²`` over all ``f`` in the span of the
    basis vectors (SY2006, eq. 6), in closed form.

    Parameters
    ----------
    kernel : Kernel, name, scikit-learn kernel, callable or "auto", default="auto"
        Kernel on the inputs.  ``"auto"`` fits the length scales of several kernels by maximizing
        the marginal likelihood of a Gaussian process on 1,000 rows, and selects the kernel that
        performs best on held-out rows.  Length scales of a given kernel are in units of the
        standardized columns.
    regularization : float or "auto", default="auto"
        Regularization strength λ, which is the noise variance of a Gaussian process.  ``"auto"``
        selects it on held-out rows.
    tuning : {"auto", "marginal_likelihood", "mean_distance"}, default="auto"
        How hyperparameters are selected.  ``"marginal_likelihood"`` fits the hyperparameters of
        ``kernel`` and λ on 1,000 rows; with ``kernel="auto"``, the kernel is a Gaussian with one
        length scale per column, an amplitude and a constant (SY2006, eq. 23).
        ``"mean_distance"`` uses a Gaussian with the mean squared distance and selects λ by
        leave-one-out.
    n_basis : int, default=500
        Maximum number of basis vectors.  The model uses fewer if the memory budget is exhausted or
        no further row improves the fit.
    selection : str, default="forward"
        Method to select the basis vectors: ``"forward"`` (SY2006, eq. 18), ``"information_gain"``
        (Seeger et al. 2003), ``"residual"``, ``"k_means"``, ``"rp_cholesky"`` or ``"random"``.
    n_candidates : int or None, default=59
        Number of rows (κ) scored in each step of forward selection.  ``None`` means all rows, up
        to 6,000.
    subset_size : int or None, default=None
        Number of random rows from which basis vectors and scores are computed.  ``None`` means all
        rows.
    standardize : bool or "auto", default="auto"
    categorical_features : "from_dtype", sequence of names or column indices, mask, or None, \
default="from_dtype"
        Categorical columns.  By default, columns with a text or categorical dtype.  A list or mask
        selects columns besides text columns.
        ``kernel="auto"`` compares them by equality; other kernels use their codes.
    memory_budget : float or "auto", default="auto"
        Memory in bytes for kernel values and factors.  When it is exhausted, no more basis vectors
        are added, and a warning reports how many fit.  ``"auto"`` is 8e9 on all machines.
    precision : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel values.  ``"auto"`` is float64 for up to 4,096 rows, and if λ is too
        small for float32.
    time_budget : float or None, default=None
        Approximate time limit of a fit in seconds.  It limits kernel selection, but not basis
        selection.  With a limit, the model depends on the speed of the machine.
    validation : {"auto", "random", "groups", "time"} or scikit-learn splitter, default="auto"
        Which rows are held out together, by the choice of kernel and λ.  ``"groups"`` leaves out
        whole groups, and ``"time"`` predicts blocks of later rows from the rows before them.
        "auto" does either if ``groups`` or ``time`` is passed to ``fit``.
    validation_gap : float, timedelta or None, default=None
        See :class:`BoostingRegressor`.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Number of threads.  ``None`` and -1 mean all cores.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, with length scales in units of the standardized columns.
    regularization_ : float
    n_basis_ : int
        Number of basis vectors of the model.
    path_ : (n_sizes,) int
        Numbers of basis vectors (50, 100, …) of the nested models that ``staged_predict`` uses.
    history_ : History
        Mean loss of each nested model.
    model_ : AdditiveModel
        Each stage is the difference between two consecutive nested models.
    n_features_in_ : int

    Notes
    -----
    With D basis vectors, a fit costs O(n D²), plus O(n D d) for the kernel values and the cost of
    the selection.  The nested models of ``path_`` use leading blocks of a single Cholesky factor
    and cost O(n D) each.  If the (n, D) Gram matrix does not fit into the memory budget, only the
    model with ``D`` basis vectors is fitted.

    If ``fit`` receives ``X_val`` and ``y_val``, the nested model that predicts them best is kept.

    References
    ----------
    Sun & Yao, *Boosting kernel models for regression*, ICDM 2006.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from hilboost import SparseKernelRidge
    >>> X, y = make_friedman1(500, random_state=0)
    >>> model = SparseKernelRidge(n_basis=100, random_state=0).fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 0.95)
    True
    """

    loss = "squared_error"

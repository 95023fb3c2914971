"""Sparse kernel ridge regression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.base import RegressorMixin

from hilboost.core.dtypes import Floats
from hilboost.estimators.predictions import NumberPredictions
from hilboost.estimators.sparse_kernel import SparseKernelMachine


class SparseKernelRidge(RegressorMixin, NumberPredictions, SparseKernelMachine):
    """Sparse kernel ridge regression: some rows as basis vectors, weights optimal on all rows.

    It minimizes ``½ Σ_i w_i (y_i - ȳ - f(x_i))² + ½ λ |f|²`` over the ``f`` in the span of the
    basis vectors (SY2006, eq. 6), in closed form.

    Parameters
    ----------
    kernel : Kernel, name, scikit-learn kernel, callable or "auto", default "auto"
        ``"auto"`` fits the length scales of several kernels by the marginal likelihood of a
        Gaussian process on 1,000 rows and chooses between them by held-out rows.  Length scales
        of a kernel given here are in units of the standardized columns.
    regularization : float or "auto", default "auto"
        λ, the noise variance of a Gaussian process.  ``"auto"`` chooses it on held-out rows.
    tuning : {"auto", "marginal_likelihood", "mean_distance"}, default "auto"
        ``"marginal_likelihood"``: fit the hyperparameters of ``kernel`` (``"auto"``: a Gaussian
        with one length scale a column, an amplitude and a constant, SY2006, eq. 23) and λ on 1,000
        rows.  ``"mean_distance"``: a Gaussian with the mean squared distance, λ by leave-one-out.
    n_basis : int, default 500
        Largest number of basis vectors; fewer where the memory budget ends before, or where no
        other row is of use.
    selection : str, default "forward"
        How they are chosen: ``"forward"`` (SY2006, eq. 18), ``"information_gain"`` (Seeger et al.
        2003), ``"residual"``, ``"k_means"``, ``"rp_cholesky"``, ``"random"``.
    n_candidates : int or None, default 59
        κ, rows scored in a step of forward selection; ``None`` is all, up to 6,000.
    subset_size : int or None, default None
        Random rows that basis vectors and scores come from; ``None`` is all.
    standardize : bool or "auto", default "auto"
    categorical_features : "from_dtype", sequence of names or column numbers, mask, or None, \
default "from_dtype"
        Columns of categories, by default those of text or of a dtype made for them, which
        ``kernel="auto"`` compares by equality; other kernels see codes.
    memory_budget : float or "auto", default "auto"
        Bytes for kernel values and factors; no basis vector is added beyond it, with a warning
        that says how many fit.  ``"auto"`` is 8e9 on any machine.
    precision : {"auto", "float32", "float64"}, default "auto"
        Of kernel values; ``"auto"`` is float64 up to 4,096 rows, and where λ is too small for
        float32.
    time_budget : float or None, default None
        Seconds that a fit may take, roughly: it shortens the choice of the kernel, not that of
        the basis.  The model then depends on the machine's speed.
    random_state : int, RandomState or None, default None
    n_jobs : int or None, default None
        Threads; ``None`` and -1 are all cores.

    Attributes
    ----------
    kernel_ : Kernel
        With its length scales, in units of the standardized columns.
    regularization_ : float
    n_basis_ : int
        Basis vectors of the machine.
    path_ : (n_sizes,) int
        Numbers of basis vectors, 50, 100, …, for which ``staged_predict`` predicts.
    history_ : History
        Mean loss of the nested machines.
    model_ : AdditiveModel
        A stage is the difference between two nested machines.
    n_features_in_ : int

    Notes
    -----
    Cost for D basis vectors: O(n D²), O(n D d) kernel values, and that of the selection.  The
    nested machines of ``path_`` come from leading blocks of the one Cholesky factor, at O(n D)
    each; where the Gram matrix (n, D) does not fit into the memory budget, there is ``D`` alone.

    With ``X_val`` and ``y_val`` in ``fit``, the nested machine that predicts these best is kept.

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

    def __init__(
        self,
        *,
        kernel: Any = "auto",
        regularization: float | str = "auto",
        tuning: str = "auto",
        n_basis: int = 500,
        selection: str = "forward",
        n_candidates: int | None = 59,
        subset_size: int | None = None,
        standardize: bool | str = "auto",
        categorical_features: Any = "from_dtype",
        memory_budget: float | str = "auto",
        precision: str = "auto",
        time_budget: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.regularization = regularization
        self.tuning = tuning
        self.n_basis = n_basis
        self.selection = selection
        self.n_candidates = n_candidates
        self.subset_size = subset_size
        self.standardize = standardize
        self.categorical_features = categorical_features
        self.memory_budget = memory_budget
        self.precision = precision
        self.time_budget = time_budget
        self.random_state = random_state
        self.n_jobs = n_jobs

    def staged_predict(self, X: Any) -> Iterator[Floats]:
        """Predictions of the nested machines of ``path_``, the smallest first.

        Parameters
        ----------
        X : array-like (n, d)

        Yields
        ------
        (n,) float64, or (n, c)
        """
        return super().staged_predict(X)

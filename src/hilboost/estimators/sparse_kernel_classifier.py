"""Sparse kernel machines for classification."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from hilboost.core.dtypes import Floats
from hilboost.core.loss import Loss
from hilboost.estimators.predictions import ClassPredictions, class_loss
from hilboost.estimators.sparse_kernel import SparseKernelMachine
from hilboost.losses.squared_hinge import SquaredHinge
from hilboost.model.codecs import ClassCodec, TargetCodec


def _has_probabilities(model: SparseKernelClassifier) -> bool:
    if model.loss != "squared_hinge":
        return True
    raise AttributeError(
        "a machine with loss='squared_hinge' has scores but no probabilities; use "
        "decision_function, or fit with loss='log_loss'."
    )


class SparseKernelClassifier(ClassifierMixin, ClassPredictions, SparseKernelMachine):
    """A sparse kernel machine for two or more classes: some rows as basis vectors.

    It minimizes ``Σ_i w_i loss_i(F) + ½ λ |f|²``, ``F`` a constant plus ``f``, over the ``f`` in
    the span of the basis vectors (SY2006, eq. 6).

    Parameters
    ----------
    loss : {"log_loss", "squared_hinge", "squared_error"}, default "log_loss"
        ``"log_loss"``: kernel logistic regression, by Newton's method (IRLS) for two classes and by
        L-BFGS preconditioned with the bound of Böhning (1992) for more.  ``"squared_hinge"``: the
        support vector machine of L2 loss, by Newton's method on the rows within the margin;
        several classes one against the rest, without probabilities.  ``"squared_error"``: least
        squares on class indicators, in closed form.
    class_weight : dict, "balanced" or None, default None
    kernel : Kernel, name, scikit-learn kernel, callable or "auto", default "auto"
        ``"auto"`` fits the length scales of several kernels by the marginal likelihood of a
        Gaussian process on 1,000 rows and chooses between them by held-out rows.  Length scales
        of a kernel given here are in units of the standardized columns.
    regularization : float or "auto", default "auto"
        λ.  ``"auto"`` chooses it on held-out rows, by the loss itself.
    tuning : {"auto", "marginal_likelihood", "mean_distance"}, default "auto"
        ``"marginal_likelihood"``: fit the hyperparameters of ``kernel`` (``"auto"``: a Gaussian
        with one length scale a column, an amplitude and a constant, SY2006, eq. 23) and λ on 1,000
        rows.  ``"mean_distance"``: a Gaussian with the mean squared distance, λ by leave-one-out.
    n_basis : int, default 500
        Largest number of basis vectors; fewer where the memory budget ends before, or where no
        other row is of use.
    selection : str, default "forward"
        How they are chosen: ``"forward"`` (SY2006, eq. 18), ``"information_gain"`` (Seeger et al.
        2003), ``"residual"``, ``"k_means"``, ``"rp_cholesky"``, ``"random"``; scores are those of
        the first step's least squares problem.
    n_candidates : int or None, default 59
        κ, rows scored in a step of forward selection; ``None`` is all, up to 6,000.
    subset_size : int or None, default None
        Random rows that basis vectors and scores come from; ``None`` is all.
    tol : float, default 1e-5
        The fit ends where a step would lower the mean loss by less than this; that step is taken.
    max_iter : int, default 500
        Largest number of steps on one nested machine.
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
        Seconds that a fit may take, roughly: it shortens the choice of the kernel and the number
        of steps, not the choice of the basis.  The model then depends on the machine's speed.
    random_state : int, RandomState or None, default None
    n_jobs : int or None, default None
        Threads; ``None`` and -1 are all cores.

    Attributes
    ----------
    classes_ : ndarray
    kernel_ : Kernel
        With its length scales, in units of the standardized columns.
    regularization_ : float
    n_basis_ : int
        Basis vectors of the machine.
    path_ : (n_sizes,) int
        Numbers of basis vectors for which ``staged_predict`` predicts.
    n_iter_ : int
        Steps, on all nested machines together.
    history_ : History
        Mean loss of the nested machines.
    model_ : AdditiveModel
        A stage is the difference between two nested machines.
    n_features_in_ : int

    Notes
    -----
    Cost for D basis vectors: O(n D²) a Newton step; with several classes once, and O(n D) a class
    and step.  Machines of D/2, D/4, … basis vectors are fitted on the way, each beginning where
    the smaller one ended; with ``"squared_error"`` those of 50, 100, …, as in
    :class:`SparseKernelRidge`.

    With ``X_val`` and ``y_val`` in ``fit``, the nested machine that predicts these best is kept.

    References
    ----------
    Sun & Yao, *Boosting kernel models for regression*, ICDM 2006.
    Zhu & Hastie, *Kernel logistic regression and the import vector machine*, 2005.
    Keerthi & DeCoste, *A modified finite Newton method for fast solution of large scale linear
    SVMs*, 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hilboost import SparseKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseKernelClassifier(n_basis=50, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SparseKernelMachine._parameter_constraints,
        "loss": [StrOptions({"log_loss", "squared_error", "squared_hinge"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        loss: str = "log_loss",
        *,
        class_weight: Any = None,
        kernel: Any = "auto",
        regularization: float | str = "auto",
        tuning: str = "auto",
        n_basis: int = 500,
        selection: str = "forward",
        n_candidates: int | None = 59,
        subset_size: int | None = None,
        tol: float = 1e-5,
        max_iter: int = 500,
        standardize: bool | str = "auto",
        categorical_features: Any = "from_dtype",
        memory_budget: float | str = "auto",
        precision: str = "auto",
        time_budget: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.class_weight = class_weight
        self.kernel = kernel
        self.regularization = regularization
        self.tuning = tuning
        self.n_basis = n_basis
        self.selection = selection
        self.n_candidates = n_candidates
        self.subset_size = subset_size
        self.tol = tol
        self.max_iter = max_iter
        self.standardize = standardize
        self.categorical_features = categorical_features
        self.memory_budget = memory_budget
        self.precision = precision
        self.time_budget = time_budget
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _make_loss(self, codec: TargetCodec) -> Loss:
        assert isinstance(codec, ClassCodec)
        n_classes = len(codec.classes)
        if self.loss == "squared_hinge":
            return SquaredHinge(n_classes)
        return class_loss(self.loss, n_classes)

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Classes by the nested machines of ``path_``, the smallest first.

        Parameters
        ----------
        X : array-like (n, d)

        Yields
        ------
        (n,) array of labels
        """
        return super().staged_predict(X)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities; not with ``loss="squared_hinge"``.

        Parameters
        ----------
        X : array-like (n, d)

        Returns
        -------
        (n, n_classes) float64
            Columns in the order of ``classes_``.
        """
        return super().predict_proba(X)

    @available_if(_has_probabilities)
    def staged_predict_proba(self, X: Any) -> Iterator[Floats]:
        """Class probabilities by the nested machines of ``path_``.

        Parameters
        ----------
        X : array-like (n, d)

        Yields
        ------
        (n, n_classes) float64
        """
        return super().staged_predict_proba(X)

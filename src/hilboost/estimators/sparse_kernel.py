"""Single sparse kernel machines, for regression and for classification."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils._param_validation import StrOptions

from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.estimators import parameter_types as types
from hilboost.estimators.class_predictions import ClassPredictions
from hilboost.estimators.kernel_boosting import KernelMachineEstimator, Selection
from hilboost.estimators.number_predictions import NumberPredictions
from hilboost.estimators.shapley import ShapleyValues
from hilboost.estimators.signatures import with_parameters
from hilboost.losses.hinge import SquaredHinge
from hilboost.model.codecs import TargetCodec
from hilboost.persistence.stored import StoredModel
from hilboost.training.continuation import Continuation
from hilboost.training.data import TrainingData
from hilboost.training.recipe import Recipe
from hilboost.training.recipes.kernel_machines import (
    KernelParameters,
    nested_learner,
    nested_recipe,
)


@with_parameters
class SparseKernelMachine(ShapleyValues, KernelMachineEstimator):
    """Base class of a kernel machine with nested bases, fitted by the boosting loop."""

    divides = "kernel values"
    _: KW_ONLY
    kernel: Any = "auto"
    regularization: types.NotNegativeOrAuto = "auto"
    tuning: types.Tuning = "auto"
    n_basis: types.Count = 500
    selection: Selection = "forward"
    n_candidates: types.CountOrNone = 59
    subset_size: types.CountOrNone = None
    standardize: types.FlagOrAuto = "auto"
    categorical_features: types.Columns = "from_dtype"
    memory_budget: types.PositiveOrAuto = "auto"
    precision: types.Precision = "auto"
    time_budget: types.PositiveOrNone = None
    validation: types.HeldOut = "auto"
    validation_gap: types.Gap = None
    random_state: types.RandomState = None
    n_jobs: types.Jobs = None

    def _recipe(self, data: TrainingData, seed: int, continuation: Continuation | None) -> Recipe:
        p = KernelParameters.of(self.get_params(deep=False), stages="sparse")
        return nested_recipe(p, self._make_loss(data.codec), data, seed)

    def _parts(self, stored: StoredModel) -> tuple[Loss, Learner]:
        p = KernelParameters.of(self.get_params(deep=False), stages="sparse")
        learner = nested_learner(p, stored.schema.categories)
        return self._make_loss(stored.codec), learner

    @property
    def path_(self) -> NDArray[np.int64]:
        """Numbers of basis vectors of the nested models."""
        path = self._summary.path
        return np.empty(0, dtype=np.int64) if path is None else path

    @property
    def n_basis_(self) -> int:
        """Number of basis vectors of the model."""
        return int(self.path_[-1]) if len(self.path_) else 0

    @property
    def n_iter_(self) -> int:
        """Total number of steps over all nested models."""
        return int(self._summary.n_iter or 0)


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
        standardized columns, and 1 for kernels by name.
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


@with_parameters
class SparseKernelClassifier(ClassPredictions, ClassifierMixin, SparseKernelMachine):
    """Sparse kernel machine for binary and multiclass classification.

    A subset of the rows serves as basis vectors.  The model minimizes
    ``Σ_i w_i loss_i(F) + ½ λ |f|²`` over all ``f`` in the span of the basis vectors, where ``F``
    is a constant plus ``f`` (SY2006, eq. 6).

    Parameters
    ----------
    loss : {"log_loss", "squared_hinge", "squared_error"}, default="log_loss"
        Loss function:

        - ``"log_loss"``: kernel logistic regression, fitted by Newton's method (IRLS) for two
          classes and by L-BFGS, preconditioned with the bound of Böhning (1992), for more.
        - ``"squared_hinge"``: support vector machine with L2 loss, fitted by Newton's method on
          the rows within the margin.  More than two classes are handled one-vs-rest.  It has no
          probabilities.
        - ``"squared_error"``: least squares on the class indicators, in closed form.
    kernel : optional
        See :class:`SparseKernelRidge`.
    regularization : float or "auto", default="auto"
        Regularization strength λ.  ``"auto"`` selects it on held-out rows, by the loss.
    tuning, n_basis : optional
        See :class:`SparseKernelRidge`.
    selection : str, default="forward"
        Method to select the basis vectors: ``"forward"`` (SY2006, eq. 18), ``"information_gain"``
        (Seeger et al. 2003), ``"residual"``, ``"k_means"``, ``"rp_cholesky"`` or ``"random"``.
        Scores refer to the least-squares problem of the first step.
    n_candidates, subset_size, standardize, categorical_features, memory_budget, \
precision : optional
        See :class:`SparseKernelRidge`.
    time_budget : float or None, default=None
        Approximate time limit of a fit in seconds.  It limits kernel selection and the number of
        steps, but not basis selection.  With a limit, the model depends on the speed of the
        machine.
    validation, validation_gap, random_state, n_jobs : optional
        See :class:`SparseKernelRidge`.
    class_weight : dict, "balanced" or None, default=None
    tol : float, default=1e-5
        Tolerance for stopping.  The fit stops after a step that lowers the mean loss by less than
        this value.
    max_iter : int, default=500
        Maximum number of steps per nested model.

    Attributes
    ----------
    classes_ : ndarray
    n_iter_ : int
        Total number of steps over all nested models.
    kernel_, regularization_, n_basis_, path_, history_, model_, n_features_in_
        See :class:`SparseKernelRidge`.

    Notes
    -----
    With D basis vectors, a Newton step costs O(n D²).  With more than two classes, the O(n D²) cost
    is incurred once, and each step costs O(n D) per class.  Nested models with D/2, D/4, … basis
    vectors are fitted first, and each one is the starting point of the next larger one.  With
    ``"squared_error"``, the nested models have 50, 100, … basis vectors, as in
    :class:`SparseKernelRidge`.

    If ``fit`` receives ``X_val`` and ``y_val``, the nested model that predicts them best is kept.

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

    loss: Annotated[str, StrOptions({"log_loss", "squared_error", "squared_hinge"})] = "log_loss"
    _: KW_ONLY
    class_weight: Any = None
    tol: types.NotNegative = 1e-5
    max_iter: types.Count = 500

    def _make_loss(self, codec: TargetCodec) -> Loss:
        if self.loss == "squared_hinge":
            return SquaredHinge(codec.of_classes().n_classes, shares_curvature=True)
        return super()._make_loss(codec)

"""Sparse kernel machines for classification."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions

from hilboost.core.loss import Loss
from hilboost.estimators.class_predictions import ClassPredictions
from hilboost.estimators.signatures import with_parameters
from hilboost.estimators.sparse_kernel import SparseKernelMachine
from hilboost.losses.squared_hinge import SquaredHinge
from hilboost.model.codecs import TargetCodec


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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SparseKernelMachine._parameter_constraints,
        "loss": [StrOptions({"log_loss", "squared_error", "squared_hinge"})],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    loss: str = "log_loss"
    _: KW_ONLY
    class_weight: Any = None
    tol: float = 1e-5
    max_iter: int = 500

    def _make_loss(self, codec: TargetCodec) -> Loss:
        if self.loss == "squared_hinge":
            return SquaredHinge(codec.of_classes().n_classes, shares_curvature=True)
        return super()._make_loss(codec)

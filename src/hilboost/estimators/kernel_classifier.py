"""Boosted kernel machines for classification."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

from sklearn.base import ClassifierMixin

from hilboost.core.loss import Loss
from hilboost.estimators.class_predictions import ClassPredictions
from hilboost.estimators.kernel_boosting import SUN_YAO_2006, KernelBoosting
from hilboost.estimators.signatures import with_parameters


@with_parameters
class KernelBoostingClassifier(ClassPredictions, ClassifierMixin, KernelBoosting):
    """Boosted kernel machines for binary and multiclass classification.

    Parameters
    ----------
    loss : str, Loss or Loss subclass, default="squared_error"
        Loss function:

        - ``"squared_error"``: squared error of the class indicators, which requires a single
          linear system.  Probabilities are a softmax of the scores, whose sharpness is fitted on
          held-out rows (8 if both kernel and λ are given).
        - ``"log_loss"``: full stages use Böhning's bound, other stages Newton steps.
        - ``"exponential"``: AdaBoost's, for more than two classes that of SAMME.
        - ``"hinge"``: support vector machine.  More than two classes are handled one-versus-rest,
          with a common kernel and λ.  It has scores but no probabilities.
        - ``"squared_hinge"``: the same with the squared loss (SY2006, section 1); steps are those
          of Newton's method, and fewer are needed.
        - A custom loss.
    kernel, stages, n_estimators : optional
        See :class:`KernelBoostingRegressor`.
    regularization : float or "auto", default="auto"
        λ in ``sum of losses + ½ λ |f|²``.  For squared error, this is the noise variance of a
        Gaussian process.  ``"auto"`` selects λ on held-out rows, by squared error for the losses
        ``"squared_error"`` and ``"log_loss"``, and otherwise by the loss itself.
    tuning, n_basis, subset_size, selection, n_candidates, solver, cg_iterations, penalty, \
reweight, refit_every, length_scale_factors, learning_rate, subsample, standardize, \
categorical_features, early_stopping, validation_fraction, validation, validation_gap, \
n_iter_no_change, tol, time_budget, memory_budget, precision, device, random_state, n_jobs, \
verbose : optional
        See :class:`KernelBoostingRegressor`.
    class_weight : dict, "balanced" or None, default=None

    Attributes
    ----------
    classes_ : ndarray
    kernel_, kernels_, kernel_weights_, regularization_, model_, loss_, learner_, history_, \
n_estimators_, n_features_in_
        See :class:`KernelBoostingRegressor`.

    Notes
    -----
    Full stages compute the kernel values once in O(n² d), store them in 2 n² bytes, and cost O(n²)
    per step.  Prediction needs only the basis vectors and costs O(m d) operations per row.

    References
    ----------
    Sun & Yao, *Boosting kernel models for regression*, ICDM 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hilboost import KernelBoostingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(KernelBoostingClassifier(random_state=0).fit(X, y).score(X, y) > 0.95)
    True
    """

    loss: str | Loss | type[Loss] = "squared_error"
    _: KW_ONLY
    class_weight: Any = None

    @classmethod
    def sun_yao_2006(cls, **changes: Any) -> KernelBoostingClassifier:
        """Create a classifier with the settings of Sun & Yao (2006), for the loss of a classifier.

        The paper states its framework (Figure 2) for classification, too, with the logistic loss
        of kernel logistic regression and LogitBoost, the soft margin loss
        (``loss="squared_hinge"``) and the exponential loss of AdaBoost, but its experiments are
        regressions.  As in :meth:`KernelBoostingRegressor.sun_yao_2006`, the model has 150 stages
        of 200 basis vectors each, selected by information gain from 2,000 random rows; the weights
        take 50 steps of conjugate gradients on the quadratic model of the penalized loss at the
        current scores, for which the paper names no method, and then a line search.  The weights
        of earlier stages are kept, since their update (27) is for squared error.  The kernel (23)
        and λ are selected by the marginal likelihood of the class indicators of 1,000 rows.

        Parameters
        ----------
        **changes : dict
            Parameters of the estimator that replace these.  The default of ``loss`` is
            ``"log_loss"``.

        Returns
        -------
        KernelBoostingClassifier
        """
        return cls(**{**SUN_YAO_2006, "loss": "log_loss", **changes})

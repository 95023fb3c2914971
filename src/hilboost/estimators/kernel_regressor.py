"""Boosted kernel machines for regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from hilboost.core.dtypes import Floats
from hilboost.core.loss import Loss
from hilboost.estimators.kernel_boosting import SUN_YAO_2006, KernelBoosting
from hilboost.estimators.number_predictions import NumberPredictions
from hilboost.estimators.signatures import public_prediction, with_parameters


@with_parameters
class KernelBoostingRegressor(NumberPredictions, RegressorMixin, KernelBoosting):
    """Boosted kernel machines for regression, suited to smooth functions of numeric inputs.

    Parameters
    ----------
    loss : str, Loss or Loss subclass, default="squared_error"
        "squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie", or a
        custom loss.
    kernel : Kernel, name, scikit-learn kernel, callable, list of these or "auto", default="auto"
        Kernel on the inputs.  ``"auto"`` fits the length scales of several kernels by maximizing
        the marginal likelihood of a Gaussian process on 1,000 rows, and selects the kernel that
        performs best on held-out rows.  Length scales of a given kernel are in units of the
        standardized columns, and 1 for kernels by name.  Each stage uses the kernel of a list that
        decreases the penalized loss most, ``½ g'H⁻¹g`` (SY2006, eq. 21).  With a list and
        ``regularization="auto"``, each kernel is multiplied by a fitted amplitude.
    stages : {"auto", "full", "sparse", "block"}, default="auto"
        Type of boosting stage:

        - ``"full"``: a step toward kernel ridge regression on all rows, by preconditioned
          conjugate gradients.
        - ``"sparse"``: a machine with ``n_basis`` basis vectors whose weights are optimal on all
          rows (SY2006).
        - ``"block"``: kernel ridge regression on the residuals of a block of ``n_basis`` rows.
        - ``"auto"``: full stages for up to 60,000 distinct rows that fit into ``memory_budget``,
          if no parameter of sparse stages is set.
    n_estimators : int or "auto", default="auto"
        Maximum number of stages.  Training stops earlier if the penalized loss no longer
        decreases.
    regularization : float or "auto", default="auto"
        λ in ``sum of losses + ½ λ |f|²``.  For squared error, this is the noise variance of a
        Gaussian process.  ``"auto"`` selects λ on held-out rows, by the loss itself.  Several
        targets are divided by their spreads, so that none counts more than another.
    tuning : {"auto", "marginal_likelihood", "mean_distance"}, default="auto"
        How hyperparameters are selected.  ``"marginal_likelihood"`` fits the hyperparameters of
        ``kernel`` and λ on 1,000 rows; with ``kernel="auto"``, the kernel is a Gaussian with one
        length scale per column, an amplitude and a constant (SY2006, eq. 23).
        ``"mean_distance"`` uses a Gaussian with the mean squared distance and selects λ by
        leave-one-out.
    n_basis : int or "auto", default="auto"
        Number of basis vectors per sparse stage (1,000), or number of rows per block (2,000).
    subset_size : int or None, default=None
        Number of rows from which a sparse stage selects its basis vectors.  ``None`` means all
        rows.
    selection : str, default="residual"
        Method to select the basis vectors: ``"forward"`` (SY2006, eq. 18), ``"information_gain"``
        (Seeger et al. 2003), ``"k_means"``, ``"random"``, ``"residual"`` or ``"rp_cholesky"``.
    n_candidates : int or None, default=59
        Number of rows (κ) scored in each step of forward selection.  ``None`` means all rows.
    solver : {"closed_form", "conjugate_gradient"}, default="closed_form"
        Solver for step 2(b) of SY2006 in sparse stages.
    cg_iterations : int, default=50
        Number of conjugate-gradient iterations with ``solver="conjugate_gradient"``.
    penalty : {"ensemble", "stage"}, default="ensemble"
        Whether a sparse stage penalizes the norm of the ensemble or of the stage (SY2006, eq. 12).
    reweight : bool, default=False
        Whether to recompute the weights of all sparse stages after each one (SY2006, eq. 27).
    refit_every : int or None, default=None
        Number of sparse stages after which a stage is added that jointly corrects the weights of
        all their basis vectors, with at most ``cg_iterations`` steps of preconditioned conjugate
        gradients.  Under losses with corners, it adds basis vectors and is exact, if these are few.
    length_scale_factors : sequence of float or None, default=None
        Multiples of the length scales.  Each sparse stage uses the one with the largest gain.
    learning_rate : float, default=1.0
    subsample : float in (0, 1], default=1.0
        Fraction of the rows used to fit a sparse or block stage.
    standardize : bool or "auto", default="auto"
        Whether to scale columns to mean 0 and standard deviation 1.  ``"auto"`` divides more than
        64 columns of similar spread (pixels, spectra) by a common factor, and does not scale the
        columns for ``Precomputed``, ``Tanimoto``, ``Delta`` and ``Hamming``.
    categorical_features : "from_dtype", sequence of names or column indices, mask, or None, \
default="from_dtype"
        Categorical columns.  By default, columns with a text or categorical dtype.  A list or mask
        selects columns besides text columns.  With
        ``kernel="auto"``, a difference in such a column reduces the similarity of two rows by a
        factor that is fitted like a length scale.  Other kernels use codes, the positions of the
        sorted levels; columns listed here are not scaled.
    early_stopping : bool or "auto", default="auto"
        Whether to hold out ``validation_fraction`` of the rows and keep the stage that predicts
        them best.  ``"auto"`` stops early only if ``X_val`` and ``y_val`` are given, and uses
        these.
    validation_fraction : float, default=0.1
    validation : {"auto", "random", "groups", "time"} or scikit-learn splitter, default="auto"
        Which rows are held out together, by early stopping, by the choice of kernel and λ, and by
        the scale of standard deviations.  ``"groups"`` leaves out whole groups, and ``"time"``
        predicts blocks of later rows from the rows before them.  "auto" does either if ``groups``
        or ``time`` is passed to ``fit``.  Early stopping accepts a splitter with a single split.
    validation_gap : float, timedelta or None, default=None
        See :class:`BoostingRegressor`.
    n_iter_no_change : int, default=5
    tol : float, default=3e-3
        Relative residual of the linear system at which full stages stop.
    time_budget : float or None, default=None
        Approximate time limit of a fit in seconds.  With a limit, the model depends on the speed
        of the machine.
    memory_budget : float or "auto", default="auto"
        Memory in bytes for Gram matrices and factors.  ``"auto"`` is 8e9 on all machines.
    precision : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel values.  ``"auto"`` is float64 for up to 4,096 rows, and if λ is too
        small for float32.
    device : str or None, default=None
        PyTorch device for dense linear algebra, such as ``"cuda"``.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Number of threads.  ``None`` and -1 mean all cores.
    verbose : int or bool, default=0
    quantile : float or sequence of float, default=0.5
        Quantile level or levels for ``loss="quantile"``.

    Attributes
    ----------
    kernel_ : Kernel or tuple of Kernel
        The kernel or list of kernels, with length scales in units of the standardized columns,
        which may be warped.
    kernels_ : (n_stages,) int64
        Position in the list of the kernel that made each stage.
    kernel_weights_ : (n_kernels,) float64
        Share of each kernel in the squared norms of their functions, the weighted sums of squared
        values on the training rows.
    regularization_ : float
    amplitude_ : float
        Maximum-likelihood factor of the kernel and the noise if these were selected automatically,
        else 1.
    model_ : AdditiveModel
    loss_, learner_ : parts of the model
    history_ : History
        Mean loss after each stage.
    n_estimators_ : int
        Number of stages in the model.
    n_features_in_ : int

    Notes
    -----
    Full stages compute the kernel values once in O(n² d), store them in 2 n² bytes, and cost O(n²)
    per step.  Prediction needs only the basis vectors and costs O(m d) operations per row.

    References
    ----------
    Sun & Yao, *Boosting kernel models for regression*, ICDM 2006.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from hilboost import KernelBoostingRegressor
    >>> X, y = make_friedman1(500, random_state=0)
    >>> model = KernelBoostingRegressor(random_state=0).fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 0.95)
    True
    """

    loss: str | Loss | type[Loss] = "squared_error"
    _: KW_ONLY
    quantile: float | Sequence[float] = 0.5

    @public_prediction
    def predict(self, X: object, return_std: bool = False) -> Any:
        """Predict the target.

        Parameters
        ----------
        X : array-like (n, d)
        return_std : bool, default=False
            Whether to also return the standard deviation of a new observation, including noise,
            under the Gaussian process with this kernel and noise variance ``regularization_`` over
            the weight of the row.  If either was selected automatically, both are multiplied by
            ``amplitude_``, the maximum-likelihood factor, and by the mean squared z-score of
            training rows that are left out.  A new observation has weight 1 if
            ``regularization`` is a number.  If it was selected automatically, only ratios of
            weights matter, and a new observation has the weight of a typical row.

        Returns
        -------
        mean : (n,) float64, or (n, c) with several targets or quantile levels
        std : (n,) float64, or (n, c) with several targets
            Returned only with ``return_std=True``.

        Raises
        ------
        InvalidData
            ``return_std=True`` with a model that is not a Gaussian process, because the loss is
            not squared error or the stages are not full.
        """
        mean = super().predict(X)
        if not return_std:
            return mean
        std, sizes = self._std(X), self._summary.sizes
        if mean.ndim == 1:
            return mean, std[:, 0]
        return mean, std * (np.ones(mean.shape[1]) if sizes is None else sizes)

    def _target_scale(self, X: object) -> Floats | None:
        return self._std(X)[:, 0] if self._has_std() else None

    @classmethod
    def sun_yao_2006(cls, **changes: Any) -> KernelBoostingRegressor:
        """Create a regressor with the settings of Sun & Yao (2006), section 4.

        The model has 150 stages of 200 basis vectors each, selected by information gain from 2,000
        random rows.  The weights are computed with 50 steps of conjugate gradients on eq. (21), and
        all stages are reweighted by (27).  The kernel (23) and λ are selected by the marginal
        likelihood of 1,000 rows.

        Parameters
        ----------
        **changes : dict
            Parameters of the estimator that replace the paper's values.

        Returns
        -------
        KernelBoostingRegressor
        """
        return cls(**{**SUN_YAO_2006, "reweight": True, **changes})

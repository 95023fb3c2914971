"""Boosted kernel machines for regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.loss import Loss
from hilboost.estimators.kernel_boosting import KernelBoosting
from hilboost.estimators.predictions import NumberPredictions
from hilboost.model.conformal import conformal_factor


class KernelBoostingRegressor(RegressorMixin, NumberPredictions, KernelBoosting):
    """Boosting of kernel machines, for smooth functions of numbers.

    Parameters
    ----------
    loss : str, Loss or Loss subclass, default "squared_error"
        "squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie", or an
        object of your own.
    quantile : float or sequence of float, default 0.5
        Levels for ``loss="quantile"``.
    kernel : Kernel, name, scikit-learn kernel, callable or "auto", default "auto"
        ``"auto"`` fits the length scales of several kernels by the marginal likelihood of a
        Gaussian process on 1,000 rows and chooses between them by held-out rows.  Length scales
        of a kernel given here are in units of the standardized columns.
    stages : {"auto", "full", "sparse", "block"}, default "auto"
        What a stage is.  ``"full"``: a step towards kernel ridge regression on all rows, by
        preconditioned conjugate gradients.  ``"sparse"``: a machine of ``n_basis`` basis vectors,
        its weights optimal on all rows (SY2006).  ``"block"``: kernel ridge regression on the
        residual of a block of ``n_basis`` rows.  ``"auto"``: full as long as that is affordable
        (60,000 distinct rows, ``memory_budget``) and no parameter of sparse stages is set.
    n_estimators : int or "auto", default "auto"
        Largest number of stages.  A fit ends earlier where the penalized loss no longer falls.
    regularization : float or "auto", default "auto"
        λ of ``sum of losses + ½ λ |f|²``; for squared error the noise variance of a Gaussian
        process.  ``"auto"`` chooses it on held-out rows; by the loss itself, except for squared
        error and log loss.
    tuning : {"auto", "marginal_likelihood", "mean_distance"}, default "auto"
        ``"marginal_likelihood"``: fit the hyperparameters of ``kernel`` (``"auto"``: a Gaussian
        with one length scale a column, an amplitude and a constant, SY2006, eq. 23) and λ on 1,000
        rows.  ``"mean_distance"``: a Gaussian with the mean squared distance, λ by leave-one-out.
    n_basis : int or "auto", default "auto"
        Basis vectors of a sparse stage (1,000), or rows of a block (2,000).
    subset_size : int or None, default None
        Rows that a sparse stage chooses its basis vectors from; ``None`` is all.
    selection : str, default "residual"
        How it chooses them: ``"forward"`` (SY2006, eq. 18), ``"information_gain"`` (Seeger et al.
        2003), ``"k_means"``, ``"random"``, ``"residual"``, ``"rp_cholesky"``.
    n_candidates : int or None, default 59
        κ, rows scored in a step of forward selection; ``None`` is all.
    solver : {"closed_form", "conjugate_gradient"}, default "closed_form"
        Step 2(b) of SY2006 for sparse stages.
    cg_iterations : int, default 50
        With ``solver="conjugate_gradient"``.
    penalty : {"ensemble", "stage"}, default "ensemble"
        Whose norm a sparse stage penalizes (SY2006, eq. 12).
    reweight : bool, default False
        Weight all sparse stages anew after each one (SY2006, eq. 27).
    refit_every : int or None, default None
        After so many sparse stages, one that corrects the weights of all their basis vectors
        together, by at most ``cg_iterations`` preconditioned conjugate-gradient steps.
    length_scale_factors : sequence of float or None, default None
        Multiples of the length scales among which every sparse stage chooses by its gain.
    learning_rate : float, default 1.0
    subsample : float in (0, 1], default 1.0
        Part of the rows that a sparse or block stage learns from.
    standardize : bool or "auto", default "auto"
        Columns to mean 0 and standard deviation 1; ``"auto"`` divides more than 64 columns of like
        spread (pixels, spectra) by one number, and leaves columns as they are for
        ``Precomputed``, ``Tanimoto``, ``Delta`` and ``Hamming``.
    categorical_features : "from_dtype", sequence of names or column numbers, mask, or None, \
default "from_dtype"
        Columns of categories; by default those of text or of a dtype made for categories.  With
        ``kernel="auto"``, rows that differ in one are less alike by a factor that is fitted like a
        length scale.  Other kernels see codes, the places of the sorted levels, which columns named
        here keep unscaled.
    early_stopping : bool or "auto", default "auto"
        Hold out ``validation_fraction`` of the rows and keep the stage that predicts them best.
        ``"auto"``: with ``X_val`` and ``y_val`` only, by these.
    validation_fraction : float, default 0.1
    n_iter_no_change : int, default 5
    tol : float, default 3e-3
        Full stages end when the residual of the linear system has fallen to this part.
    time_budget : float or None, default None
        Seconds that a fit may take, roughly; the model then depends on the machine's speed.
    memory_budget : float or "auto", default "auto"
        Bytes for Gram matrices and factors; ``"auto"`` is 8e9 on any machine.
    precision : {"auto", "float32", "float64"}, default "auto"
        Of kernel values; ``"auto"`` is float64 up to 4,096 rows, and where λ is too small for
        float32.
    device : str or None, default None
        A PyTorch device, such as ``"cuda"``, for the dense algebra.
    random_state : int, RandomState or None, default None
    n_jobs : int or None, default None
        Threads; ``None`` and -1 are all cores.
    verbose : int or bool, default 0

    Attributes
    ----------
    kernel_ : Kernel
        With its length scales, in units of the standardized columns.
    regularization_ : float
    amplitude_ : float
        Most likely factor of kernel and noise where these were chosen automatically, else 1.
    model_ : AdditiveModel
    loss_, learner_ : parts of the model
    history_ : History
        Mean loss after every stage.
    n_estimators_ : int
        Stages kept.
    n_features_in_ : int

    Notes
    -----
    Cost with full stages: O(n² d) kernel values once, kept at 2 n² bytes, and O(n²) a step.
    Prediction needs the basis vectors only, and O(m d) operations a row.

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

    def __init__(
        self,
        loss: str | Loss | type[Loss] = "squared_error",
        *,
        quantile: float | Sequence[float] = 0.5,
        kernel: Any = "auto",
        stages: str = "auto",
        n_estimators: int | str = "auto",
        regularization: float | str = "auto",
        tuning: str = "auto",
        n_basis: int | str = "auto",
        subset_size: int | None = None,
        selection: str = "residual",
        n_candidates: int | None = 59,
        solver: str = "closed_form",
        cg_iterations: int = 50,
        penalty: str = "ensemble",
        reweight: bool = False,
        refit_every: int | None = None,
        length_scale_factors: Sequence[float] | None = None,
        learning_rate: float = 1.0,
        subsample: float = 1.0,
        standardize: bool | str = "auto",
        categorical_features: Any = "from_dtype",
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        tol: float = 3e-3,
        time_budget: float | None = None,
        memory_budget: float | str = "auto",
        precision: str = "auto",
        device: str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int | bool = 0,
    ) -> None:
        super().__init__(
            loss,
            kernel=kernel,
            stages=stages,
            n_estimators=n_estimators,
            regularization=regularization,
            tuning=tuning,
            n_basis=n_basis,
            subset_size=subset_size,
            selection=selection,
            n_candidates=n_candidates,
            solver=solver,
            cg_iterations=cg_iterations,
            penalty=penalty,
            reweight=reweight,
            refit_every=refit_every,
            length_scale_factors=length_scale_factors,
            learning_rate=learning_rate,
            subsample=subsample,
            standardize=standardize,
            categorical_features=categorical_features,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            tol=tol,
            time_budget=time_budget,
            memory_budget=memory_budget,
            precision=precision,
            device=device,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.quantile = quantile

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the target.

        Parameters
        ----------
        X : array-like (n, d)
        return_std : bool, default False
            Also the standard deviation of a new observation, noise included, of the Gaussian
            process with this kernel and noise variance ``regularization_``.  Where either was
            chosen automatically, both are multiplied by ``amplitude_``, the most likely factor.

        Returns
        -------
        mean : (n,) float64, or (n, c) with several targets or quantile levels
        std : (n,) float64
            Only with ``return_std``; the same for all targets.

        Raises
        ------
        InvalidData
            ``return_std`` of a model that is no Gaussian process: another loss than squared error,
            or other stages than full ones.
        """
        mean = super().predict(X)
        return (mean, self._std(X)) if return_std else mean

    def calibrate(self, X: Any, y: Any) -> KernelBoostingRegressor:
        """Take rows that the model was not fitted to as the yardstick of prediction intervals.

        Parameters
        ----------
        X : array-like (n, d)
        y : array-like (n,) or (n, c)

        Returns
        -------
        self
        """
        mean, std = self.predict(X, return_std=True)
        y = self.fitted_.encode_target(y, len(mean))
        scores = np.abs(y - mean.reshape(y.shape)) / std[:, None]
        summary = replace(self._summary, scores=scores)
        self.fitted_ = replace(self.fitted_, kernel_machine=summary)
        return self

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Intervals that hold a new observation with at least this probability.

        Split conformal: the standard deviations of :meth:`predict`, multiplied by one factor so
        that the rows given to :meth:`calibrate` would have been covered.

        Parameters
        ----------
        X : array-like (n, d)
        coverage : float in (0, 1), default 0.9

        Returns
        -------
        (n, 2) float64, or (n, c, 2) with several targets
            Lower and upper ends.

        Raises
        ------
        InvalidData
            :meth:`calibrate` has not been called, or with too few rows for this coverage.
        InvalidParameter
            ``coverage`` is not between 0 and 1.
        """
        check_is_fitted(self)
        scores = self._summary.scores
        if scores is None:
            raise InvalidData(
                "predict_interval needs rows the model was not fitted to: call "
                "calibrate(X_held_out, y_held_out) first."
            )
        if not (isinstance(coverage, Real) and 0 < coverage < 1):
            raise InvalidParameter(f"coverage must be between 0 and 1; got {coverage!r}.")
        mean, std = self.predict(X, return_std=True)
        half = np.multiply.outer(std, conformal_factor(scores, coverage))
        half = half.reshape(mean.shape)
        return np.stack([mean - half, mean + half], axis=-1)

    @classmethod
    def sun_yao_2006(cls, **changes: Any) -> KernelBoostingRegressor:
        """The setting of Sun & Yao (2006), section 4; any parameter may be changed by name.

        150 stages of 200 basis vectors, chosen by information gain from 2,000 random rows, 50
        steps of conjugate gradients on eq. (21), all stages weighted anew by (27), and the kernel
        (23) with λ by the marginal likelihood of 1,000 rows.

        Parameters
        ----------
        **changes : dict
            Parameters of the estimator, in place of the paper's.

        Returns
        -------
        KernelBoostingRegressor
        """
        setting: dict[str, Any] = {
            "tuning": "marginal_likelihood",
            "stages": "sparse",
            "n_estimators": 150,
            "n_basis": 200,
            "subset_size": 2000,
            "selection": "information_gain",
            "solver": "conjugate_gradient",
            "cg_iterations": 50,
            "penalty": "ensemble",
            "reweight": True,
        }
        return cls(**{**setting, **changes})

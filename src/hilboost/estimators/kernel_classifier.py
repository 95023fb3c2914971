"""Boosted kernel machines for classification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.base import ClassifierMixin

from hilboost.core.loss import Loss
from hilboost.estimators.kernel_boosting import KernelBoosting
from hilboost.estimators.predictions import ClassPredictions


class KernelBoostingClassifier(ClassifierMixin, ClassPredictions, KernelBoosting):
    """Boosting of kernel machines, for two or more classes.

    Parameters
    ----------
    loss : str, Loss or Loss subclass, default "squared_error"
        "squared_error" of class indicators: one linear system, and probabilities by a softmax whose
        sharpness is fitted on held-out rows (8 where kernel and λ are both given).  "log_loss":
        Böhning's bound with full stages, Newton steps with others.  "exponential" (two classes),
        or an object of your own.
    class_weight : dict, "balanced" or None, default None
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
    model_ : AdditiveModel
    loss_, learner_ : parts of the model
    history_ : History
        Mean loss after every stage.
    n_estimators_ : int
        Stages kept.
    classes_ : ndarray
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
    >>> from sklearn.datasets import load_iris
    >>> from hilboost import KernelBoostingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(KernelBoostingClassifier(random_state=0).fit(X, y).score(X, y) > 0.95)
    True
    """

    def __init__(
        self,
        loss: str | Loss | type[Loss] = "squared_error",
        *,
        class_weight: Any = None,
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
        self.class_weight = class_weight

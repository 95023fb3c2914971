"""Contract tests of a given part."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Literal

import numpy as np

from hilboost.core.adaptive_loss import AdaptiveLoss
from hilboost.core.dtypes import Floats
from hilboost.core.labels import take_labels
from hilboost.core.learner import Learner
from hilboost.core.loss import Loss
from hilboost.core.output_space import OutputSpace
from hilboost.kernels import Kernel
from hilboost.testing.kernels import KernelContract
from hilboost.testing.learners import LearnerContract
from hilboost.testing.losses import LossContract
from hilboost.testing.outputs import OutputSpaceContract


class _Given:
    """Contract tests of a given part: tests use copies of it, and rows drawn from given arrays."""

    def __init__(self, part: Any, *arrays: Any) -> None:
        self._part, self._arrays = part, arrays

    def make(self) -> Any:
        return deepcopy(self._part)

    def _draw(self, rng: np.random.Generator, n: int) -> list[Any] | None:
        """Draw the same rows of all arrays, each at most once if there are enough rows."""
        if self._arrays[0] is None:
            return None
        n_rows = len(self._arrays[0])
        rows = rng.choice(n_rows, n, replace=n_rows < n)
        return [take_labels(array, rows) for array in self._arrays]


class _GivenKernel(_Given, KernelContract):
    def data(self, rng: np.random.Generator, n: int) -> Floats:
        drawn = self._draw(rng, n)
        return super().data(rng, n) if drawn is None else drawn[0]


def check_kernel(
    kernel: Kernel, X: Any = None, *, single: float = 1e-5, saved: bool = True
) -> None:
    """Run all contract tests of a kernel.

    Parameters
    ----------
    kernel : Kernel
    X : array-like (n, d), optional
        Valid rows, from which some are drawn.  By default, three columns of normal random numbers.
    single : float, default=1e-5
        See :attr:`KernelContract.single`.
    saved : bool, default=True
        Whether to check saving and loading.  Set it to ``False`` for classes defined in a script
        or a notebook, to which model files cannot refer.

    Raises
    ------
    AssertionError
        If a check fails.  The message names the check and describes the failure.
    """
    contract = _GivenKernel(kernel, None if X is None else np.asarray(X, dtype=np.float64))
    contract.single, contract.saved = single, saved
    contract.run()


class _GivenLearner(_Given, LearnerContract):
    def data(self, rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        drawn = self._draw(rng, n)
        return super().data(rng, n) if drawn is None else (drawn[0], drawn[1])


def check_learner(
    learner: Learner,
    X: Any = None,
    y: Any = None,
    *,
    takes_weights: bool = True,
    takes_samples: bool = True,
    continues: bool = True,
    monotone: bool = True,
    saved: bool = True,
    trusted: tuple[type, ...] = (),
) -> None:
    """Run all contract tests of a learner.

    Parameters
    ----------
    learner : Learner
    X : array-like (n, d), optional
        Inputs, from which rows are drawn.  By default, four columns of noisy targets and noise.
    y : array-like (n,) or (n, r), optional
        Targets of ``X``.
    takes_weights : bool, default=True
        See :attr:`LearnerContract.takes_weights`.
    takes_samples : bool, default=True
        See :attr:`LearnerContract.takes_samples`.
    continues : bool, default=True
        See :attr:`LearnerContract.continues`.
    monotone : bool, default=True
        See :attr:`LearnerContract.monotone`.
    saved : bool, default=True
        Whether to check saving and loading.  Set it to ``False`` for classes defined in a script
        or a notebook, to which model files cannot refer.
    trusted : tuple of type, optional
        Additional custom classes in model files, besides the learner and its base models.

    Raises
    ------
    AssertionError
        If a check fails.  The message names the check and describes the failure.
    ValueError
        If only one of ``X`` and ``y`` is passed.
    """
    if (X is None) != (y is None):
        raise ValueError("only one of X and y was passed; pass both or neither.")
    if X is not None:
        X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        y = y[:, None] if y.ndim == 1 else y
    contract = _GivenLearner(learner, X, y)
    contract.n_outputs = contract.n_outputs if y is None else y.shape[1]
    contract.takes_weights, contract.takes_samples = takes_weights, takes_samples
    contract.continues, contract.monotone = continues, monotone
    contract.saved, contract.trusted = saved, trusted
    contract.run()


class _GivenLoss(_Given, LossContract):
    def targets(self, rng: np.random.Generator, n: int) -> Any:
        drawn = self._draw(rng, n)
        return super().targets(rng, n) if drawn is None else drawn[0]


def check_loss(
    loss: Loss,
    y: Any = None,
    *,
    classifier: bool = False,
    hessian: Literal["exact", "bound"] | float = "exact",
    best_leaves: bool = True,
    saved: bool = True,
) -> None:
    """Run all contract tests of a loss.

    Parameters
    ----------
    loss : Loss
    y : array-like (n,) or (n, c), optional
        Valid targets, from which rows are drawn; class codes for a classifier.  By default, normal
        random numbers, or codes of two classes.
    classifier : bool, default=False
        See :attr:`LossContract.classifier`.
    hessian : {"exact", "bound"} or float, default="exact"
        See :attr:`LossContract.hessian`.
    best_leaves : bool, default=True
        See :attr:`LossContract.best_leaves`.
    saved : bool, default=True
        Whether to check saving and loading.  Set it to ``False`` for classes defined in a script
        or a notebook, to which model files cannot refer.

    Raises
    ------
    AssertionError
        If a check fails.  The message names the check and describes the failure.
    """
    contract = _GivenLoss(loss, None if y is None else np.asarray(y))
    contract.classifier, contract.hessian = classifier, hessian
    contract.best_leaves, contract.saved = best_leaves, saved
    contract.monotone = not isinstance(loss, AdaptiveLoss)
    contract.run()


class _GivenOutputSpace(_Given, OutputSpaceContract):
    def labels(self, rng: np.random.Generator, n: int) -> Any:
        drawn = self._draw(rng, n)
        return super().labels(rng, n) if drawn is None else drawn[0]


def check_output_space(
    space: OutputSpace,
    labels: Any,
    *,
    exact: tuple[str, ...] = (),
    distinct: bool = True,
    ordered: bool = False,
    saved: bool = True,
) -> None:
    """Run all contract tests of an output space.

    Parameters
    ----------
    space : OutputSpace
    labels : array or list of labels
        At least 40 valid labels, from which some are drawn, in the form returned by ``decode``.
    exact : tuple of str, optional
        See :attr:`OutputSpaceContract.exact`.
    distinct : bool, default=True
        See :attr:`OutputSpaceContract.distinct`.
    ordered : bool, default=False
        See :attr:`OutputSpaceContract.ordered`.
    saved : bool, default=True
        Whether to check saving and loading.  Set it to ``False`` for classes defined in a script
        or a notebook, to which model files cannot refer.

    Raises
    ------
    AssertionError
        If a check fails.  The message names the check and describes the failure.
    """
    contract = _GivenOutputSpace(space, labels)
    contract.exact, contract.distinct, contract.ordered = exact, distinct, ordered
    contract.saved = saved
    contract.run()

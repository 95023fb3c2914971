"""The contract tests of a given object, all at once."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Literal

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.labels import take_labels
from hilboost.core.learner import Learner
from hilboost.core.loss import AdaptiveLoss, Loss
from hilboost.core.output_space import OutputSpace
from hilboost.kernels import Kernel
from hilboost.testing.kernels import KernelContract
from hilboost.testing.learners import LearnerContract
from hilboost.testing.losses import LossContract
from hilboost.testing.outputs import OutputSpaceContract


class _Given:
    """Makes copies of a part, and draws from the rows given with it."""

    def __init__(self, part: Any, *arrays: Any) -> None:
        self._part, self._arrays = part, arrays

    def make(self) -> Any:
        return deepcopy(self._part)

    def _draw(self, rng: np.random.Generator, n: int) -> list[Any] | None:
        """The same rows of all arrays, no row twice if there are enough; ``None`` without rows."""
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
        Rows that the kernel takes, from which some are drawn.  By default three columns of normal
        numbers.
    single : float, default 1e-5
        As :attr:`KernelContract.single`.
    saved : bool, default True
        Whether the class can be imported by a model file; False for classes of a script or a
        notebook.

    Raises
    ------
    AssertionError
        The kernel breaks its contract; the message names the check and says what is wrong.
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
        Inputs, from which rows are drawn.  By default four columns of noisy targets and noise.
    y : array-like (n,) or (n, r), optional
        Targets of ``X``.
    takes_weights : bool, default True
        As :attr:`LearnerContract.takes_weights`.
    takes_samples : bool, default True
        As :attr:`LearnerContract.takes_samples`.
    continues : bool, default True
        As :attr:`LearnerContract.continues`.
    monotone : bool, default True
        As :attr:`LearnerContract.monotone`.
    saved : bool, default True
        Whether the classes can be imported by a model file; False for classes of a script or a
        notebook.
    trusted : tuple of type, optional
        Further classes that the model file names, besides the learner and its base models.

    Raises
    ------
    AssertionError
        The learner breaks its contract; the message names the check and says what is wrong.
    ValueError
        Only one of ``X`` and ``y`` is given.
    """
    if (X is None) != (y is None):
        raise ValueError("Give both X and y, or neither.")
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
        Valid targets, from which rows are drawn: class codes for a classifier.  By default normal,
        or codes of two classes.
    classifier : bool, default False
        As :attr:`LossContract.classifier`.
    hessian : {"exact", "bound"} or float, default "exact"
        As :attr:`LossContract.hessian`.
    best_leaves : bool, default True
        As :attr:`LossContract.best_leaves`.
    saved : bool, default True
        Whether the class can be imported by a model file; False for classes of a script or a
        notebook.

    Raises
    ------
    AssertionError
        The loss breaks its contract; the message names the check and says what is wrong.
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
        Valid ones, from which some are drawn: 40 or more, and in the form in which ``decode``
        returns them.
    exact : tuple of str, optional
        As :attr:`OutputSpaceContract.exact`.
    distinct : bool, default True
        As :attr:`OutputSpaceContract.distinct`.
    ordered : bool, default False
        As :attr:`OutputSpaceContract.ordered`.
    saved : bool, default True
        Whether the classes can be imported by a model file; False for classes of a script or a
        notebook.

    Raises
    ------
    AssertionError
        The space breaks its contract; the message names the check and says what is wrong.
    """
    contract = _GivenOutputSpace(space, labels)
    contract.exact, contract.distinct, contract.ordered = exact, distinct, ordered
    contract.saved = saved
    contract.run()

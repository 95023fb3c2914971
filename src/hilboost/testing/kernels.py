"""Contract tests of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.estimators import KernelBoostingRegressor
from hilboost.testing.contract import ensure, ensure_close, read_only
from hilboost.testing.models import ModelContract

_N = 24
_STEP = 1e-5
_PENALTY = 0.1


class KernelContract(ModelContract):
    """Tests of a kernel: Gram blocks, derivatives, and a kernel machine with the kernel.

    Attributes
    ----------
    single : float
        Maximum error of a block in float32, relative to the largest entry.

    Examples
    --------
    >>> from hilboost.kernels import Gaussian
    >>> from hilboost.testing import KernelContract
    >>> class TestGaussian(KernelContract):
    ...     def make(self):
    ...         return Gaussian(2.0)
    """

    single: float = 1e-5

    def data(self, rng: np.random.Generator, n: int) -> Floats:
        """Draw valid rows; by default normal random numbers, with one duplicate row.

        Parameters
        ----------
        rng : numpy.random.Generator
        n : int

        Returns
        -------
        (n, d) array
        """
        if drawn := self._drawn(rng, n):
            return np.asarray(drawn[0], dtype=np.float64)
        rows = rng.normal(size=(n, 3)) * [1, 2, 4] + [0, 3, -2]
        rows[n // 2] = rows[0]
        return rows

    def pair(self, a: Floats, b: Floats) -> float:
        """Compute the kernel of two rows with a simple reference implementation.

        By default, this is the kernel itself, so that blocks are compared with single entries.

        Parameters
        ----------
        a, b : (d,) array

        Returns
        -------
        float
        """
        return float(np.asarray(self.make().block(a[None], b[None]))[0, 0])

    def build(self, **parameters: Any) -> Any:
        """Create an exact kernel machine with the kernel."""
        small = {"regularization": _PENALTY, "standardize": False, "random_state": 0}
        return KernelBoostingRegressor(kernel=self.make(), **small | parameters)

    def table(self, n: int = 40) -> tuple[Any, Any]:
        """Draw rows from :meth:`data`, without missing values, and a noisy function of them."""
        rng = np.random.default_rng(3)
        X = np.nan_to_num(self.data(rng, n))  # kernel machines do not support missing values
        K = np.asarray(self.make().block(X, X))
        return X, K @ rng.normal(size=n) + rng.normal(size=n) / 10

    def draw(self, n: int = _N) -> Floats:
        """Draw rows with a fixed seed.

        Parameters
        ----------
        n : int

        Returns
        -------
        (n, d) array
        """
        return self.data(np.random.default_rng(9), n)

    def test_block_is_the_kernel_of_every_pair(self) -> None:
        """``block`` agrees with :meth:`pair`."""
        A, B = np.split(self.draw(30), [17])
        expected = np.array([[self.pair(a, b) for b in B] for a in A])
        said = "block must contain the kernel of all pairs of rows."
        ensure_close(self.make().block(A, B), expected, said, 1e-9, 1e-12 * np.abs(expected).max())

    def test_block_is_symmetric_and_positive_semidefinite(self) -> None:
        """Gram matrices are symmetric and positive semidefinite."""
        X = self.draw()
        K = self.make().block(X, X)
        scale = np.abs(K).max()
        ensure_close(K, K.T, "The kernel must be symmetric.", atol=1e-7 * scale)
        smallest = np.linalg.eigvalsh(K)[0]
        ensure(
            smallest >= -1e-8 * _N * scale,
            f"The kernel must be positive semidefinite; an eigenvalue is {smallest:.3g}, and the "
            f"largest entry {scale:.3g}.",
        )

    def test_diag_is_the_diagonal_of_the_block(self) -> None:
        """``diag`` is the diagonal of ``block``, in float64 for rows in either precision."""
        for dtype, limit in ((np.float32, self.single), (np.float64, 1e-6)):
            X, kernel = self.draw(40).astype(dtype), self.make()
            diag, K = kernel.diag(X), kernel.block(X, X)
            ensure(diag.shape == (40,), f"diag must return shape (a,); got {diag.shape}.")
            ensure(diag.dtype == np.float64, f"diag must return float64; got {diag.dtype}.")
            said, atol = "diag must equal the diagonal of block.", limit * np.abs(K).max()
            ensure_close(diag, np.diagonal(K), said, atol=atol)

    def test_single_precision_is_close_to_double(self) -> None:
        """``block`` returns the dtype of the rows, and float32 blocks are close to float64 ones."""
        A, B = np.split(self.draw(30), [17])
        kernel = self.make()
        single = kernel.block(A.astype(np.float32), B.astype(np.float32))
        double = kernel.block(A, B)
        for block, dtype in ((single, np.float32), (double, np.float64)):
            said = f"block must return the dtype of the rows, {dtype.__name__}; got {block.dtype}."
            ensure(block.dtype == dtype, said)
        said = "block in float32 must be close to block in float64."
        ensure_close(single, double, said, atol=self.single * np.abs(double).max())

    def test_rows_are_not_changed(self) -> None:
        """``block`` and ``diag`` do not modify rows in either memory layout."""
        for order in ("C", "F"):
            X = np.array(self.draw(), order=order)
            (copied,) = read_only(X)
            kernel = self.make()
            kernel.block(X, X)
            kernel.diag(X)
            kernel.parameter_gradient(X, symmetric_weights(_N))
            ensure_close(X, copied, "The kernel must not modify its rows.")

    def test_a_block_belongs_to_the_caller(self) -> None:
        """Modifying a block does not change later blocks."""
        X, kernel = self.draw(), self.make()
        block = kernel.block(X, X)
        copied = block.copy()
        block *= 3
        ensure_close(kernel.block(X, X), copied, "Modifying a block must not change later blocks.")

    def test_a_block_is_made_of_blocks(self) -> None:
        """Each entry depends only on its two rows."""
        A, B = np.split(self.draw(30), [17])
        kernel = self.make()
        whole = kernel.block(A, B)
        said = "Each entry of a block must depend only on its two rows."
        ensure_close(
            kernel.block(A[3:9], B[5:6]), whole[3:9, 5:6], said, 1e-9, 1e-9 * np.abs(whole).max()
        )

    def test_its_own_rows_are_accepted(self) -> None:
        """``check`` accepts the number of columns of :meth:`data`."""
        self.make().check(self.draw().shape[1])

    def test_log_parameters_can_be_set(self) -> None:
        """``with_log_parameters`` returns a kernel of the same class with these parameters."""
        A, B = np.split(self.draw(30), [17])
        kernel = self.make()
        theta = kernel.log_parameters
        said = "log_parameters must be a float64 array of shape (p,)."
        ensure(theta.dtype == np.float64 and theta.ndim == 1, said)
        same = kernel.with_log_parameters(theta)
        ensure(
            type(same) is type(kernel),
            f"with_log_parameters must return a {type(kernel).__name__}; got a "
            f"{type(same).__name__}.",
        )
        said = "with_log_parameters(log_parameters) must return an equal kernel."
        ensure_close(same.block(A, B), kernel.block(A, B), said, 1e-9)
        moved = theta + np.linspace(0.1, 0.5, len(theta))
        said = "with_log_parameters must set log_parameters."
        ensure_close(kernel.with_log_parameters(moved).log_parameters, moved, said, 1e-12, 1e-15)

    def test_contraction_is_the_derivative_of_the_weighted_sum(self) -> None:
        """``parameter_gradient`` agrees with central differences."""
        X, W, kernel = self.draw(), symmetric_weights(_N), self.make()
        theta = kernel.log_parameters
        # Equal rows are omitted: differences of a square root at 0 are rounding errors.
        W[(X[:, None] == X[None]).all(axis=2)] = 0
        numeric = np.zeros_like(theta)
        for p, step in enumerate(_STEP * np.eye(len(theta))):
            up, down = (
                np.sum(W * kernel.with_log_parameters(theta + s).block(X, X)) for s in (step, -step)
            )
            numeric[p] = (up - down) / (2 * _STEP)
        for found in (kernel.parameter_gradient(X, W), kernel.gram_and_gradient(X)[1](W)):
            said = "parameter_gradient must be the derivative with respect to log_parameters."
            ensure_close(found, numeric, said, 1e-6, 1e-6)

    def test_a_kernel_machine_is_kernel_ridge_regression(self) -> None:
        """A kernel machine agrees with the closed form of kernel ridge regression."""
        X, y = self.table()
        predicted = self.build(regularization=_PENALTY).fit(X, y).predict(X)
        K = np.asarray(self.make().block(X, X))
        weights = np.linalg.solve(K + _PENALTY * np.eye(len(K)), y - y.mean())
        said = "A kernel machine with this kernel must equal kernel ridge regression."
        atol = 1e-6 * max(1.0, np.abs(y).max())
        ensure_close(predicted, y.mean() + K @ weights, said, atol=atol)


def symmetric_weights(n: int) -> Floats:  # (n, n) float64
    """Draw a random symmetric matrix, (n, n)."""
    W = np.random.default_rng(n).normal(size=(n, n))
    return W + W.T

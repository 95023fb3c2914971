"""Preconditioned conjugate gradients for symmetric positive definite systems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hilboost.backends import array_api
from hilboost.backends.array_api import Array

_SAME_RESIDUAL = 1e-3  # relative difference


@dataclass(frozen=True, eq=False)
class Progress:
    """The state of a search, from which the next one continues.

    Attributes
    ----------
    direction : (n, r) or None
        The last direction; ``None`` if there was no step.
    size : (r,) or None
        ``r'z`` of the last step, for its residual ``r`` and preconditioned residual ``z``.
    residual : (n, r)
        What is left of the right-hand side.
    """

    direction: Array | None
    size: Array | None
    residual: Array

    def continues(self, b: Array) -> bool:
        """Whether a right-hand side is what this search left."""
        return not largest_norm(b - self.residual) > _SAME_RESIDUAL * largest_norm(b)


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The sum of some steps, and the state after them.

    Attributes
    ----------
    x : (n, r)
        Their sum.
    Sx : (n, r)
        What they take from the residual.
    left : float
        Largest column norm of the residual that is left.
    progress : Progress
    """

    x: Array
    Sx: Array
    left: float
    progress: Progress


@dataclass(frozen=True, eq=False)
class ConjugateGradients:
    """Conjugate gradients for ``S x = b``, several right-hand sides in parallel.

    Parameters
    ----------
    system : (n, r) -> (n, r)
        ``S``, symmetric positive definite.
    precondition : (n, r) -> (n, r)
        About ``S⁻¹``.

    Notes
    -----
    Fletcher & Reeves (1964).  A search that continues from the progress of another one is equal to
    one longer search.
    """

    system: Callable[[Array], Array]
    precondition: Callable[[Array], Array]

    def run(
        self, b: Array, iterations: int, tolerance: float, progress: Progress | None = None
    ) -> SearchResult:
        """Search from zero, with directions conjugate to those of an earlier search.

        Parameters
        ----------
        b : (n, r)
            The present residual.
        iterations : int
            Maximum number of steps.
        tolerance : float
            Stop when the residual norm of every column is at most this.
        progress : Progress, optional
            Of the search to continue; ignored if it did not leave ``b``.

        Returns
        -------
        SearchResult
        """
        xp = array_api.namespace(b)
        x, taken = b * 0.0, b * 0.0
        r = b + 0.0
        p, size = None, None
        if progress is not None and progress.continues(b):
            p, size = progress.direction, progress.size
        for _ in range(iterations):
            if largest_norm(r) <= tolerance:
                break
            z = self.precondition(r)
            new = xp.sum(r * z, axis=0)
            beta = xp.zeros_like(new) if size is None else new / _nonzero(size)
            p = z if p is None else z + beta * p
            Sp = self.system(p)
            curvature = xp.sum(p * Sp, axis=0)
            # Rounding may leave a direction without curvature: such a column has converged.
            step = xp.where((curvature > 0) & (new > 0), new / _nonzero(curvature), 0.0)
            if not float(xp.max(step)) > 0:
                break
            x += step * p
            taken += step * Sp
            r = b - taken
            size = new
        return SearchResult(x, taken, largest_norm(r), Progress(p, size, r))


def largest_norm(array: Array) -> float:
    """Norm of the largest column."""
    xp = array_api.namespace(array)
    return float(xp.max(xp.sqrt(xp.sum(array * array, axis=0))))


def _nonzero(array: Array) -> Array:
    xp = array_api.namespace(array)
    return xp.where(array == 0, 1.0, array)

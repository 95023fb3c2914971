"""Preconditioned conjugate gradients for symmetric positive definite systems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hilboost.backends import array_api
from hilboost.backends.array_api import Array

_SAME_RESIDUAL = 1e-3  # relative difference


@dataclass(frozen=True, eq=False)
class Progress:
    """The state of a search, from which the next one continues."""

    direction: Array | None  # (n, r) or None: the last direction; ``None`` if there was no step
    # (r,) or None: ``r'z`` of the last step, for its residual ``r`` and preconditioned residual
    # ``z``
    size: Array | None
    residual: Array  # (n, r): what is left of the right-hand side

    def continues(self, b: Array) -> bool:
        """Whether a right-hand side is what this search left."""
        return not largest_norm(b - self.residual) > _SAME_RESIDUAL * largest_norm(b)


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The sum of some steps, and the state after them."""

    x: Array  # (n, r): their sum
    Sx: Array  # (n, r): what they take from the residual
    left: float  # largest column norm of the residual that is left
    progress: Progress


@dataclass(frozen=True, eq=False)
class ConjugateGradients:
    """Conjugate gradients for ``S x = b``, several right-hand sides in parallel.

    Fletcher & Reeves (1964).  A search that continues from the progress of another one is equal to
    one longer search.
    """

    system: Callable[[Array], Array]  # (n, r) -> (n, r): ``S``, symmetric positive definite
    precondition: Callable[[Array], Array]  # (n, r) -> (n, r): about ``S⁻¹``

    def run(
        self, b: Array, iterations: int, tolerance: float, progress: Progress | None = None
    ) -> SearchResult:
        """Search from zero, with directions conjugate to an earlier search's directions.

        ``b`` (n, r) is the present residual, and the search ends when the norm of each of its
        columns is at most the tolerance.  An earlier search is ignored if it did not leave ``b``.
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

"""Contract tests of losses that predict distributions."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.target import Target
from hilboost.distributions import Distribution
from hilboost.losses import DistributionLoss
from hilboost.testing.contract import ensure, ensure_close
from hilboost.testing.losses import LossContract

_DRAWS = 4000


class DistributionContract(LossContract):
    """Tests of a :class:`~hilboost.losses.DistributionLoss`, besides the tests of every loss.

    Attributes
    ----------
    information : {"exact", "bound"}
        Whether ``information`` is the Fisher information or an upper bound on it.
    accuracy : float
        Largest relative error of an exact information.

    Examples
    --------
    >>> from hilboost.losses import Laplace
    >>> from hilboost.testing import DistributionContract
    >>> class TestLaplace(DistributionContract):
    ...     def make(self):
    ...         return Laplace()
    """

    information: Literal["exact", "bound"] = "exact"
    accuracy: float = 0.05

    def targets(self, rng: np.random.Generator, n: int) -> Any:
        """Draw targets of the support."""
        draws = {
            "numbers": rng.laplace(1, 2, n),  # whose tails have a best number of degrees of freedom
            "positive": rng.gamma(2, 1.5, n),
            "counts": rng.poisson(rng.gamma(1.5, 2, n)).astype(float),
            "fractions": rng.beta(2, 3, n),
        }
        return draws[self.make().support]

    def table(self, n: int = 80) -> tuple[Any, Any]:
        """Draw a table whose scale of the target depends on a column."""
        rng = np.random.default_rng(3)
        y = self.targets(rng, n)
        return np.column_stack([y + rng.normal(size=n) / 2, rng.normal(size=(n, 2))]), y

    def _drawn_rows(self) -> tuple[DistributionLoss, Target, Distribution, tuple[Floats, ...]]:
        _, target, raw = self.draw()
        loss: DistributionLoss = self.make()
        found = loss.distribution_of(raw)
        return loss, target, found, tuple(one[:, None] for one in loss.values_of(raw))

    def test_hessian_is_the_derivative_of_the_gradient(self) -> None:
        """The information is the mean square of the scores of draws; the hessian may be larger."""
        loss, target, found, parameters = self._drawn_rows()
        squares = [
            np.broadcast_to(score**2, (len(found), _DRAWS))
            for score in loss.score(found.sample(_DRAWS, 0), parameters)
        ]
        information = loss.information(parameters)
        _, _, raw = self.draw()
        hessian = loss.gradients(target, raw).hessian
        for k, (name, square) in enumerate(zip(loss.parameters, squares, strict=True)):
            own = np.broadcast_to(information[k], (len(found), 1))[:, 0]
            error = 5 * square.std(axis=1) / np.sqrt(_DRAWS) + 0.01 * own
            simulated = square.mean(axis=1)
            if self.information == "exact":
                error = error + self.accuracy * own
                said = f"The information of {name} is more than the mean square of its scores."
                ensure((own <= simulated + error).all(), said)
            said = f"The information of {name} is less than the mean square of its scores."
            ensure((own >= simulated - error).all(), said)
            said = f"The hessian of {name} must be its information, or more for short steps."
            ensure(hessian is None or (hessian[:, k] >= own * (1 - 1e-9)).all(), said)

    def test_quantiles_invert_the_distribution_function(self) -> None:
        """``quantile`` is the smallest number that ``cdf`` maps to the level or more."""
        loss, _, found, _ = self._drawn_rows()
        levels = np.array([0.02, 0.3, 0.5, 0.9])
        y = found.quantile(levels)
        ensure(y.shape == (len(found), 4), "quantile must return shape (n, k).")
        ensure((np.diff(y, axis=1) >= 0).all(), "Quantiles must rise with their levels.")
        if loss.support == "counts":
            reached = (found.cdf(y) >= levels - 1e-9) & (found.cdf(y - 1) < levels + 1e-9)
            ensure(reached.all(), "quantile must be the smallest count with cdf >= level.")
            return
        said = "cdf must be the inverse of quantile."
        ensure_close(found.cdf(y), np.tile(levels, (len(found), 1)), said, 1e-6, 1e-9)

    def test_density_is_the_slope_of_the_distribution_function(self) -> None:
        """``pdf`` agrees with differences of ``cdf``, and ``log_score`` with ``pdf``."""
        loss, target, found, _ = self._drawn_rows()
        y = target.y[:, 0]
        if loss.support == "counts":
            slope = found.cdf(y) - found.cdf(y - 1)
        else:
            step = 1e-5 * np.diff(found.interval(0.5))[:, 0]
            slope = (found.cdf(y + step) - found.cdf(y - step)) / (2 * step)
        said = "pdf must be the derivative of cdf."
        ensure_close(found.pdf(y), slope, said, rtol=1e-4, atol=1e-7)
        said = "log_score must be -log(pdf)."
        ensure_close(found.log_score(y), -np.log(found.pdf(y)), said, rtol=1e-6, atol=1e-9)

    def test_moments_and_scores_are_those_of_draws(self) -> None:
        """Mean, standard deviation and CRPS agree with random draws."""
        _, target, found, _ = self._drawn_rows()
        y, draws = target.y, found.sample(_DRAWS, 1)
        others = found.sample(_DRAWS, 2)
        crps = np.abs(draws - y) - 0.5 * np.abs(draws - others)
        for name, own, simulated in (
            ("mean", found.mean, draws),
            ("crps", found.crps(y[:, 0]), crps),
        ):
            error = 6 * simulated.std(axis=1) / np.sqrt(_DRAWS) + 1e-9
            said = f"{name} must be that of draws of the distribution."
            ensure((np.abs(own - simulated.mean(axis=1)) <= error).all(), said)
        inside = np.isfinite(found.std) & (found.std < 10 * np.diff(found.interval(0.5))[:, 0])
        ratio = (draws.std(axis=1) / np.maximum(found.std, 1e-300))[inside]
        said = "std must be the standard deviation of draws."
        ensure(bool((np.abs(np.log(ratio)) < 0.7).all()), said)

    def test_the_unit_of_the_target_does_not_matter(self) -> None:
        """A fit in units of the spread has the same losses for a target in any unit."""
        loss, target, raw = self.draw()
        units = loss.units(target)
        ensure(units is not None, "A distribution needs the units of its fit.")
        if units is None or np.all(units.size == 1):
            return
        inner = target.with_y(target.y / units.size)
        ensure_close(
            loss.value(target, units.raw_in_own(units.raw_in_fit(raw))),
            units.loss_in_own(units.loss.value(inner, units.raw_in_fit(raw))),
            "parameters must have the kinds that say how they depend on the unit of the target.",
            rtol=1e-8,
            atol=1e-9,
        )

    def test_a_constant_target_has_a_finite_start(self) -> None:
        """In a fit, the best constant of equal targets is finite, and so is its loss."""
        loss = self.make()
        y = np.tile(self.targets(np.random.default_rng(0), 1).reshape(1, 1), (5, 1))
        for one in (y, y[:1]):
            units = loss.units(Target(one))
            inner = Target(one / units.size)
            start = units.loss.initial_raw(inner)
            value = units.loss.value(inner, np.tile(start, (len(one), 1)))
            said = "The start of a fit to equal targets must be finite, as its bounds ensure."
            ensure(bool(np.isfinite(start).all() and np.isfinite(value).all()), said)

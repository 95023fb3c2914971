"""The choice of amplitudes and λ for several kernels."""

import numpy as np
import pytest
from scipy.stats import dirichlet

from hilboost.core.gradients import Gradients
from hilboost.kernels import Gaussian, Linear, OnColumns
from hilboost.kernels.marginal_likelihood import SharePrior
from hilboost.learners.kernel_machine.config import KernelMachineConfig
from hilboost.learners.kernel_machine.tuning.choose import Chooser, effective_number

KERNELS = tuple(OnColumns(kernel, [k]) for k, kernel in enumerate((Gaussian(1.0), Linear())))


def chosen(X, Y, kernels=KERNELS):
    config = KernelMachineConfig(kernels=kernels)
    workspace = config.prepare(X, None, 0, 1)
    with workspace.team:
        return Chooser(config, workspace).choice(Gradients(Y), None)


def shares(found):
    factors = np.array([kernel.factor for kernel in found.parts])
    return factors / factors.sum()


@pytest.mark.parametrize("strength", [1.0, 3.5])
def test_the_prior_is_a_dirichlet_density_of_the_shares(strength):
    equal = np.log([0.2, 3.0, 0.01])
    prior, theta = SharePrior(equal, strength), np.array([0.3, -1.0, 2.0, 0.1])
    value, gradient = prior.penalty(theta)
    share = np.exp(theta[:3] - equal) / np.exp(theta[:3] - equal).sum()
    density = dirichlet([2, 2, 2])
    rise = density.logpdf([1 / 3] * 3) - density.logpdf(share)
    assert value - prior.penalty(np.append(equal, 0.0))[0] == pytest.approx(strength * rise)
    for k, step in enumerate(1e-6 * np.eye(4)):
        slope = (prior.penalty(theta + step)[0] - prior.penalty(theta - step)[0]) / 2e-6
        assert gradient[k] == pytest.approx(slope, abs=1e-7)
    assert prior.penalty(theta + [5, 5, 5, 0])[0] == pytest.approx(value)


def test_correlated_targets_count_once():
    rng = np.random.default_rng(0)
    Y = np.linalg.qr(rng.normal(size=(30, 4)))[0]
    assert effective_number(Y) == pytest.approx(4)
    assert effective_number(np.repeat(Y[:, :1], 7, axis=1)) == pytest.approx(1)
    assert effective_number(np.c_[Y[:5], Y[:5]]) == pytest.approx(effective_number(Y[:5]))
    X = rng.normal(size=(40, 2))
    y = np.sin(3 * X[:, :1]) + X[:, 1:] + 0.3 * rng.normal(size=(40, 1))
    np.testing.assert_allclose(
        shares(chosen(X, np.repeat(y, 5, axis=1))), shares(chosen(X, y)), rtol=1e-3
    )


def test_few_rows_do_not_exclude_a_kernel_and_many_do():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    y = X[:, 1:] + 0.5 * rng.normal(size=(500, 1))
    few, many = (shares(chosen(X[:n], y[:n]))[0] for n in (12, 500))
    assert few > 0.02
    assert many < 0.03
    assert many < few / 3


def test_the_penalty_of_a_likelihood_without_noise_is_found_all_the_same(monkeypatch):
    """The search goes down and up from the noise by factors of up to 256."""
    from hilboost.learners.kernel_machine.tuning import choose as module

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.sin(X[:, :1]) + rng.normal(size=(60, 1))
    found = module.maximize
    free = chosen(X, y)

    def without_noise(*arguments, **parameters):
        best = found(*arguments, **parameters)
        return type(best)(best.kernel, 1e-7, best.value)

    monkeypatch.setattr(module, "maximize", without_noise)
    assert chosen(X, y).regularization > free.regularization / 8

"""Gaussian processes of GPyTorch among the peers of ``kernels.py``.

torch and gpytorch are imported where they are used, so that they need not be there.
"""

from __future__ import annotations

import contextlib
import copy
import math
from typing import Any

import numpy as np

from kernel_data import Rows
from kernel_tuning import Fitted, Kernel, Targets, chosen_inputs


class ExactProcess:
    """Exact Gaussian process of GPyTorch with one length scale for each column."""

    def __init__(self, Z: np.ndarray, targets: np.ndarray, kind: str = "matern") -> None:
        import gpytorch
        import torch

        class Model(gpytorch.models.ExactGP):
            def __init__(self, inputs: Any, values: Any, likelihood: Any) -> None:
                super().__init__(inputs, values, likelihood)
                self.mean_module = gpytorch.means.ConstantMean()
                self.covar_module = gpytorch.kernels.ScaleKernel(_ard_kernel(kind, Z.shape[1]))

            def forward(self, inputs: Any) -> Any:
                return gpytorch.distributions.MultivariateNormal(
                    self.mean_module(inputs), self.covar_module(inputs)
                )

        self._inputs = torch.as_tensor(Z, dtype=torch.float32)
        self._values = torch.as_tensor(targets, dtype=torch.float32)
        self._likelihood = gpytorch.likelihoods.GaussianLikelihood(
            noise_constraint=gpytorch.constraints.GreaterThan(1e-6)
        )
        self._model = Model(self._inputs, self._values, self._likelihood)
        self._model.covar_module.base_kernel.lengthscale = math.sqrt(Z.shape[1])
        self._likelihood.noise = 0.05

    def learn(self, iterations: int) -> None:
        """L-BFGS on the marginal likelihood, Cholesky throughout; the best parameters seen stay."""
        import gpytorch
        import linear_operator
        import torch

        self._model.train()
        self._likelihood.train()
        likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(self._likelihood, self._model)
        optimizer = torch.optim.LBFGS(
            self._model.parameters(),
            max_iter=iterations,
            max_eval=2 * iterations,
            line_search_fn="strong_wolfe",
        )
        best, state = math.inf, copy.deepcopy(self._model.state_dict())

        def closure() -> Any:
            nonlocal best, state
            optimizer.zero_grad()
            loss = -likelihood(self._model(self._inputs), self._values)
            loss.backward()
            if loss.item() < best:
                best, state = loss.item(), copy.deepcopy(self._model.state_dict())
            return loss

        failures = (linear_operator.utils.errors.NotPSDError, linear_operator.utils.errors.NanError)
        with gpytorch.settings.max_cholesky_size(1_000_000), contextlib.suppress(*failures):
            optimizer.step(closure)
        self._model.load_state_dict(state)

    def scales_and_noise(self) -> tuple[np.ndarray, float]:
        """Length scales, and the noise relative to the variance of the process."""
        covariance = self._model.covar_module
        scales = covariance.base_kernel.lengthscale.detach().numpy().ravel()
        return scales.astype(np.float64), (self._likelihood.noise / covariance.outputscale).item()

    def condition(self, Z: np.ndarray, targets: np.ndarray) -> None:
        """Rest the prediction on these rows, the parameters staying as they are."""
        import torch

        self._model.set_train_data(
            torch.as_tensor(Z, dtype=torch.float32),
            torch.as_tensor(targets, dtype=torch.float32),
            strict=False,
        )

    def mean(self, Z: np.ndarray) -> np.ndarray:
        import gpytorch
        import torch

        self._model.eval()
        settings = gpytorch.settings
        with (
            torch.no_grad(),
            settings.max_cholesky_size(1_000_000),
            settings.skip_posterior_variances(),
        ):
            return self._model(torch.as_tensor(Z, dtype=torch.float32)).mean.numpy()


def _ard_kernel(kind: str, columns: int) -> Any:
    import gpytorch

    if kind == "gaussian":
        return gpytorch.kernels.RBFKernel(ard_num_dims=columns)
    return gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=columns)


def fit_exact_process(
    train: Rows, seed: int, threads: int, rows: int, conditioned: int = 0
) -> Fitted:
    """Parameters from ``rows`` rows; the prediction rests on these or on ``conditioned`` ones."""
    inputs, targets = chosen_inputs(train, seed), Targets(train)
    part = train.sample(rows, seed)
    process = ExactProcess(inputs(part.X), targets(part))
    process.learn(EXACT_ITERATIONS)
    if conditioned:
        part = train.sample(conditioned, seed)
        process.condition(inputs(part.X), targets(part))
    process.mean(inputs(part.X[:1]))  # factors the matrix once, as part of the fit
    note = f"parameters from {min(rows, len(train)):,} rows"
    return Fitted(lambda X: targets.back(process.mean(inputs(X))), len(part), note)


EXACT_ITERATIONS = 40
SVGP_BATCH = 1_024
SVGP_RATE = 0.02
SVGP_NATURAL_RATE = 0.1


def fit_sparse_process(train: Rows, seed: int, threads: int, inducing: int, epochs: int) -> Fitted:
    """SVGP: whitened, natural gradients for the variational part and Adam for the rest.

    Inducing points start at k-means centers, length scales at those of an exact process on a small
    subset; both rates fall to nothing along a cosine.
    """
    import gpytorch
    import torch
    from sklearn.cluster import MiniBatchKMeans

    torch.manual_seed(seed)
    inputs, targets = chosen_inputs(train, seed), Targets(train)
    Z, values = inputs(train.X), targets(train)
    inducing = min(inducing, len(train) // 2)
    centers = MiniBatchKMeans(inducing, n_init=1, random_state=seed, batch_size=4_096).fit(Z)
    points = torch.as_tensor(centers.cluster_centers_, dtype=torch.float32)

    small = train.sample(1_000, seed)
    start = ExactProcess(inputs(small.X), targets(small))
    start.learn(ARD_ITERATIONS)
    scales, noise = start.scales_and_noise()

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self) -> None:
            super().__init__(
                gpytorch.variational.VariationalStrategy(
                    self,
                    points,
                    gpytorch.variational.TrilNaturalVariationalDistribution(inducing),
                    learn_inducing_locations=True,
                )
            )
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(_ard_kernel("matern", Z.shape[1]))

        def forward(self, rows: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(rows), self.covar_module(rows)
            )

    model, likelihood = Model(), gpytorch.likelihoods.GaussianLikelihood()
    model.covar_module.base_kernel.lengthscale = torch.as_tensor(scales, dtype=torch.float32)
    likelihood.noise = max(noise, 2e-4)
    X = torch.as_tensor(Z, dtype=torch.float32)
    y = torch.as_tensor(values, dtype=torch.float32)
    batches = math.ceil(len(X) / SVGP_BATCH)
    optimizers = [
        gpytorch.optim.NGD(model.variational_parameters(), num_data=len(X), lr=SVGP_NATURAL_RATE),
        torch.optim.Adam(
            [{"params": model.hyperparameters()}, {"params": likelihood.parameters()}], lr=SVGP_RATE
        ),
    ]
    schedules = [
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * batches)
        for optimizer in optimizers
    ]
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(X))
    model.train()
    for _ in range(epochs):
        for chosen in torch.randperm(len(X)).chunk(batches):
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss = -objective(model(X[chosen]), y[chosen])
            loss.backward()
            for optimizer, schedule in zip(optimizers, schedules, strict=True):
                optimizer.step()
                schedule.step()
    model.eval()

    def predict(rows: np.ndarray) -> np.ndarray:
        with torch.no_grad(), gpytorch.settings.skip_posterior_variances():
            found = [
                model(torch.as_tensor(part, dtype=torch.float32)).mean
                for part in np.array_split(inputs(rows), math.ceil(len(rows) / 4_096))
            ]
        return targets.back(torch.cat(found).numpy())

    return Fitted(predict, len(train), f"{inducing} inducing points")


ARD_ROWS = 1_500
ARD_ITERATIONS = 25


def ard_kernel(train: Rows, seed: int, matern: bool) -> Kernel:
    """One length scale for each column, by GPyTorch's marginal likelihood on a subset."""
    part = train.sample(ARD_ROWS, seed)
    inputs = chosen_inputs(train, seed)
    process = ExactProcess(inputs(part.X), Targets(part)(part), "matern" if matern else "gaussian")
    process.learn(ARD_ITERATIONS)
    scales, noise = process.scales_and_noise()
    return Kernel(inputs.scaled_by(1 / scales), 0.5, noise, matern)

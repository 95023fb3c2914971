"""Choices of a kernel machine fit in model files."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilboost.learners.kernel_machine.summary import KernelMachineSummary, StageKernels
from hilboost.model import AdditiveModel
from hilboost.persistence.kernel_expansions import describe, read_kernel
from hilboost.persistence.require import (
    Arrays,
    positive,
    require,
    require_below,
    require_finite,
    require_kind,
    require_list,
)
from hilboost.persistence.values import ValueReader, ValueWriter

STAGES = ("full", "sparse", "block")


def to_file(
    summary: KernelMachineSummary, stages: str | None, writer: ValueWriter, keeps_noise: bool
) -> tuple[dict[str, Any], Arrays]:
    """Convert to fields and arrays; noise only if standard deviations need them."""
    kernel, regularization = summary.kernel, summary.regularization
    listed = summary.stage_kernels
    fields: dict[str, Any] = {
        "kernel": None if kernel is None or listed is not None else describe(kernel, writer),
        "regularization": None if regularization is None else float(regularization),
        "amplitude": float(summary.amplitude),
    }
    if summary.path is None:
        fields["stages"] = stages
    else:
        fields["path"], fields["n_iter"] = summary.path.tolist(), int(summary.n_iter or 0)
    arrays: Arrays = {}
    if listed is not None:
        fields["kernels"] = [describe(kernel, writer) for kernel in listed.kernels]
        arrays["kernels.chosen"] = np.ascontiguousarray(listed.chosen)
        arrays["kernels.norms"] = np.ascontiguousarray(listed.norms)
    if summary.noise is not None and keeps_noise:
        arrays["noise"] = np.ascontiguousarray(summary.noise)
        if summary.row_weight != 1:
            fields["row_weight"] = float(summary.row_weight)
        factors, sizes = np.array(summary.residual_factor), summary.sizes
        if len(factors):
            fields["residual_factor"] = float(factors.mean())
        if len(factors) > 1:  # the units take their ratios
            sizes = (1.0 if sizes is None else sizes) * np.sqrt(factors / factors.mean())
        if sizes is not None:
            fields["sizes"] = sizes.tolist()
    return fields, arrays


def from_file(
    fields: Any, arrays: Arrays, model: AdditiveModel, n_features: int, reader: ValueReader
) -> tuple[KernelMachineSummary, str | None]:
    """Read what :func:`to_file` wrote, and the name of the stages."""
    require_kind(fields, dict, "machine")
    description, regularization = fields["kernel"], fields["regularization"]
    if regularization is not None:
        regularization = float(regularization)
        require(0 <= regularization < np.inf, "regularization")
    path = n_iter = stages = None
    if "path" in fields:
        path, n_iter = _path(fields["path"], len(model.stages)), int(fields["n_iter"])
    else:
        stages = fields["stages"]
        require(stages in STAGES, "stages")
    noise = _noise(arrays, model) if "noise" in arrays else None
    require(noise is None or regularization is not None, "noise")
    factor = [positive(fields[k], k) for k in ("residual_factor",) if k in fields]
    require(noise is not None or not factor, "residual_factor")
    n_columns = _n_columns(model, n_features)
    kernel = None if description is None else read_kernel(description, n_columns, reader)
    listed = None
    if "kernels" in fields:
        listed = _listed(fields["kernels"], arrays, len(model.stages), n_features, reader)
        kernel = listed.total
    require(kernel is not None or not model.stages, "kernel")
    summary = KernelMachineSummary(
        kernel=kernel,
        regularization=regularization,
        amplitude=positive(fields["amplitude"], "amplitude"),
        noise=noise,
        row_weight=positive(fields.get("row_weight", 1.0), "row_weight"),
        sizes=_sizes(fields["sizes"], len(model.initial_raw)) if "sizes" in fields else None,
        path=path,
        n_iter=n_iter,
        stage_kernels=listed,
        residual_factor=factor,
    )
    return summary, stages


def _n_columns(model: AdditiveModel, n_features: int) -> int:
    """Number of columns of the basis vectors, to which indicators of missing values belong."""
    models: list[Any] = [term.model for stage in model.stages[:1] for term in stage.terms[:1]]
    return models[0].basis.shape[1] if models and models[0].family == "expansions" else n_features


def _sizes(written: object, n_targets: int) -> np.ndarray:
    sizes = require_kind(written, list, "sizes")
    require(len(sizes) == n_targets > 1, "sizes")
    return np.array([positive(size, "sizes") for size in sizes])


def _path(written: object, n_stages: int) -> np.ndarray:
    path = require_list(written, (int,), "path")
    require(len(path) == n_stages and all(0 < size < 2**31 for size in path), "path")
    return np.array(path, dtype=np.int64)


def _listed(
    written: object, arrays: Arrays, n_stages: int, n_features: int, reader: ValueReader
) -> StageKernels:
    descriptions = require_kind(written, list, "kernels")
    require(len(descriptions) > 0, "kernels")
    kernels = tuple(read_kernel(one, n_features, reader) for one in descriptions)
    chosen = require_below(arrays, "kernels.chosen", len(kernels), n_stages)
    norms = require_finite(arrays, "kernels.norms", 2)
    require(norms.shape == (n_stages, len(kernels)), "kernels.norms")
    require(bool((norms >= 0).all()), "kernels.norms")
    return StageKernels(kernels, np.array(chosen, dtype=np.int64), norms)


def _noise(arrays: Arrays, model: AdditiveModel) -> np.ndarray:
    first: Any = model.stages[0].terms[0].model
    noise = require_finite(arrays, "noise")
    require(first.family == "expansions" and noise.shape == (len(first.basis),), "noise")
    require(bool((noise >= 0).all()), "noise")
    return noise

"""Stages of the sum of several kernels, and the part of each kernel in them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hilboost.backends import array_api
from hilboost.core.base_model import Stage
from hilboost.core.dtypes import Floats
from hilboost.kernels import Kernel, Sum
from hilboost.learners.kernel_machine.descending import Descending
from hilboost.learners.kernel_machine.snapshots import JointSnapshot
from hilboost.learners.kernel_machine.workspace import Workspace


class JointKernels:
    """The functions of the kernels; each stage of the sum adds to all of them.

    Under a loss with corners, no kernel alone may lower the loss where all together do.
    """

    def __init__(self, kernels: Sequence[Kernel], functions: Sequence[Floats] = ()) -> None:
        self.kernels = tuple(kernels)
        self.functions = [function.copy() for function in functions]

    def snapshot(self) -> JointSnapshot:
        """State that later stages need."""
        return JointSnapshot(list(self.kernels), [function.copy() for function in self.functions])

    def add(self, workspace: Workspace, step: Descending, stage: Stage) -> int:
        """Add a stage of the sum; return the position of the kernel with the largest part in it."""
        model, (term,) = step.term.model, stage.terms
        assert model.rows is not None
        weights = array_api.like(term.coefficient * model.weights, workspace.X, "float64")
        outputs, parts = [], list(Sum((model.kernel,)).parts)
        for kernel in self.kernels:
            n_parts = len(Sum((kernel,)).parts)  # sums are flattened
            part, parts = Sum(tuple(parts[:n_parts])), parts[n_parts:]
            gram = workspace.gram(part, None, model.rows)
            outputs.append(array_api.to_numpy(gram.times(weights)))
        if not self.functions:
            self.functions = [np.zeros_like(values) for values in outputs]
        for function, values in zip(self.functions, outputs, strict=True):
            function += values
        return int(np.argmax([float((values**2).sum()) for values in outputs]))

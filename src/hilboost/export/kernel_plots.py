"""Plots of the kernels of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hilboost.core.errors import IncompatibleParts, InvalidParameter
from hilboost.core.packages import required
from hilboost.export.estimators import fitted_record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KINDS = "KernelBoostingRegressor and KernelBoostingClassifier"
_INCHES_A_BAR = 0.35


def plot_kernels(model: Any, names: Sequence[str] | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw the weight of each kernel of a list as a bar, with its number of stages.

    Parameters
    ----------
    model : KernelBoostingRegressor or KernelBoostingClassifier
        Fitted, with a list of kernels.
    names : sequence of str, optional
        One for each kernel; their positions in the list by default.
    ax : matplotlib axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InvalidType
        The estimator is not supported.
    IncompatibleParts
        The parameter ``kernel`` is not a list.
    InvalidParameter
        The number of names is wrong.
    MissingPackage
        The package matplotlib is not installed.
    """
    has_weights = hasattr(type(model), "kernel_weights_")
    fitted = fitted_record(model, "plot_kernels", _KINDS, has_weights)
    machine = fitted.kernel_machine
    if machine is None or machine.stage_kernels is None:
        raise IncompatibleParts(
            "plot_kernels draws the weights of several kernels, and this model has one kernel; fit "
            "with a list of kernels."
        )
    weights, chosen = machine.stage_kernels.weights, machine.stage_kernels.chosen
    n = len(weights)
    labels = [f"kernel {k}" for k in range(n)] if names is None else [str(name) for name in names]
    if len(labels) != n:
        raise InvalidParameter(
            f"names must have one entry for each of the {n} kernels; got {len(labels)}."
        )
    if ax is None:
        pyplot = required("matplotlib.pyplot", "plot_kernels")

        size = (6.0, 1.2 + _INCHES_A_BAR * n)
        ax = pyplot.figure(figsize=size, layout="constrained").add_subplot()
    bars = ax.barh(np.arange(n), weights, color="#4c78a8")
    counts = np.bincount(chosen, minlength=n).tolist()
    ax.bar_label(bars, [f"{count} stage{'' if count == 1 else 's'}" for count in counts], padding=3)
    ax.set_yticks(np.arange(n), [label.replace("$", r"\$") for label in labels])
    ax.invert_yaxis()
    ax.set_xlim(0, 1.25 * max(float(weights.max()), 0.01))
    ax.set_xlabel("share of the squared norms")
    return ax

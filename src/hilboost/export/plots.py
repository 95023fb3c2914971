"""Plots of single trees, and of the kernels of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts, InvalidParameter, shown
from hilboost.core.packages import required
from hilboost.core.plain_values import is_integer
from hilboost.export.columns import Columns, named
from hilboost.export.estimators import fitted_record
from hilboost.export.scalar_trees import ScalarTree, fitted_trees
from hilboost.export.tables import depths
from hilboost.model.fitted import FittedModel
from hilboost.tables.number_text import are_days, day_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_LINE, _INK = "#8a8f98", "#22262b"
_INCHES_A_LEAF, _INCHES_A_LETTER = 0.3, 0.08
_LONGEST_NAME = 24
_LONGEST_LEVELS = 32
_CAPTION = "up: the test is true; thick: the value is missing; leaves: added to the raw output"


def plot_tree(
    model: Any, stage: int = 0, output: int = 0, *, tree: int = 0, ax: Axes | None = None
) -> Axes:
    """Draw one tree of a model, from the root on the left to the leaves on the right.

    Rows that pass a test follow the upper branch; rows with a missing value follow the thick one.
    Leaves are colored by their contributions to the raw output.  Columns derived from categories
    are named as in :func:`tree_table`.

    Parameters
    ----------
    model : BoostingRegressor or BoostingClassifier
        Fitted, with trees.
    stage : int, default=0
        Negative numbers count from the last stage.
    output : int, default=0
        Number of the class, target or quantile level.
    tree : int, default=0
        Number of the tree, if a stage has several trees for one output (a fit with ``cv_folds``).
    ax : matplotlib axes, optional
        Axes to draw on; a new, large enough figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InvalidType
        The estimator is not supported.
    IncompatibleParts
        The base models are not trees.
    InvalidParameter
        The stage, output or tree does not exist.
    MissingPackage
        The package matplotlib is not installed.
    """
    chosen = _chosen(model, stage, output, tree)
    depth = depths(chosen)
    y = _heights(chosen)
    texts = _texts(chosen, Columns.of(model.fitted_))
    if ax is None:
        pyplot = required("matplotlib.pyplot", "plot_tree")

        a_level = 0.6 + _INCHES_A_LETTER * max(map(len, texts))
        size = (max(a_level * (depth.max() + 1.1), 5.5), _INCHES_A_LEAF * len(chosen.values) + 1.1)
        ax = pyplot.figure(figsize=size, layout="constrained").add_subplot()
    ax.set_axis_off()
    ax.set_xlim(-0.5, depth.max() + 0.6)
    ax.set_ylim(len(chosen.values) - 0.3, -1.0)
    _draw_branches(ax, chosen, depth, y)
    _draw_nodes(ax, chosen, depth, y, texts)
    ax.set_title(_title(model.fitted_, chosen), loc="left", color=_INK, fontsize=11)
    ax.text(0, 0, _CAPTION, transform=ax.transAxes, va="top", color=_LINE, fontsize=8)
    return ax


def _chosen(model: Any, stage: int, output: int, number: int) -> ScalarTree:
    trees = fitted_trees(model, "plot_tree", numbers_only=False)
    stage = _checked("stage", stage, model.n_estimators_, "the model", from_the_end=True)
    output = _checked("output", output, len(model.model_.initial_raw), "the model")
    found = [tree for tree in trees if tree.stage == stage and tree.output == output]
    return found[_checked("tree", number, len(found), f"output {output} of stage {stage}")]


def _checked(name: str, value: int, n: int, owner: str, from_the_end: bool = False) -> int:
    """Validate an index and return it as a number from 0 to n - 1."""
    if is_integer(value) and (-n if from_the_end else 0) <= value < n:
        return int(value) % n
    raise InvalidParameter(
        f"plot_tree: {name} is {shown(value)}, but {owner} has {n} {name}s, numbered from 0."
    )


def _title(fitted: FittedModel, tree: ScalarTree) -> str:
    parts = [f"Stage {tree.stage + 1} of {fitted.n_stages}"]
    if len(fitted.model.initial_raw) > 1:
        of_classes = fitted.codec.kind == "classes"
        name = f"class {fitted.classes[tree.output]}" if of_classes else f"output {tree.output}"
        parts.append(name)
    return ", ".join(parts)


def _heights(tree: ScalarTree) -> Floats:
    """Place leaves below each other, and every other node in the middle of its children."""
    child, is_leaf = tree.tree.child, tree.is_leaf
    y = np.zeros(len(is_leaf))
    next_row = 0
    waiting = [0]
    while waiting:
        node = waiting.pop()
        if is_leaf[node]:
            y[node] = next_row
            next_row += 1
        else:
            waiting += [child[node] + 1, child[node]]
    for node in np.flatnonzero(~is_leaf)[::-1]:  # children come after their parents
        y[node] = (y[child[node]] + y[child[node] + 1]) / 2
    return y


def _draw_branches(ax: Axes, tree: ScalarTree, x: np.ndarray, y: Floats) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    curve = [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]
    for node in np.flatnonzero(~tree.is_leaf):
        left = tree.tree.child[node]
        for k, child in enumerate((left, left + 1)):
            middle = (x[node] + x[child]) / 2
            points = [(x[node], y[node]), (middle, y[node]), (middle, y[child])]
            with_missing = bool(tree.tree.missing_right[node]) == bool(k)
            path = Path([*points, (x[child], y[child])], curve)
            width = 2.2 if with_missing else 1.0
            ax.add_patch(PathPatch(path, fill=False, color=_LINE, linewidth=width, zorder=1))


def _draw_nodes(ax: Axes, tree: ScalarTree, x: np.ndarray, y: Floats, texts: list[str]) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import TwoSlopeNorm

    largest = float(np.abs(tree.values).max()) or 1.0
    colors = colormaps["RdBu_r"]
    scale = TwoSlopeNorm(0.0, -1.8 * largest, 1.8 * largest)  # pale colors keep the text legible
    values = tree.node_values
    for node, text in enumerate(texts):
        leaf = bool(tree.is_leaf[node])
        box = {
            "boxstyle": "round,pad=0.3",
            "facecolor": colors(scale(values[node])) if leaf else "white",
            "edgecolor": "none" if leaf else _LINE,
        }
        ax.text(x[node], y[node], text, ha="center", va="center", fontsize=9, color=_INK, bbox=box)


def _texts(tree: ScalarTree, seen: Columns) -> list[str]:
    """Compose the text of every node."""
    values = tree.node_values
    return [
        _number(values[node], signed=True) if leaf else _test(tree, node, seen)
        for node, leaf in enumerate(tree.is_leaf)
    ]


def _test(tree: ScalarTree, node: int, seen: Columns) -> str:
    """Compose the test of an inner node, with dollar signs escaped for matplotlib."""
    name = _shortened(named(seen.names[tree.tree.column[node]]), _LONGEST_NAME)
    threshold = tree.tree.threshold[node]
    if len(tree.tree.by_level) and tree.tree.by_level[node]:
        levels, _ = seen.left_levels(tree.tree, node)
        test = f"{name}: {_listed([str(level) for level in levels])}"
    elif threshold == np.inf:
        test = f"{name} known"
    else:
        days = are_days(seen.names[tree.tree.column[node]], seen.names)
        test = f"{name} ≤ {(day_text(np.floor(threshold)) if days else None) or _number(threshold)}"
    return test.replace("$", r"\$")


def _listed(levels: list[str]) -> str:
    """List as many levels as fit, and the number of the others."""
    shown: list[str] = []
    for level in levels:
        level = _shortened(level, _LONGEST_NAME)
        if shown and len(", ".join([*shown, level])) > _LONGEST_LEVELS:
            return f"{', '.join(shown)} + {len(levels) - len(shown)}"
        shown.append(level)
    return ", ".join(shown) if shown else "none known"


def _shortened(text: str, longest: int) -> str:
    """Put text on one line and truncate it if it is long."""
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _number(value: float, signed: bool = False) -> str:
    """Format a number with four digits and a typographic minus sign."""
    text = f"{value:+.4g}" if signed else f"{value:.4g}"
    return text.replace("-", "−")


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

"""One line that says what a fitted model consists of."""

from __future__ import annotations

from hilboost.core.errors import counted
from hilboost.model.fit_facts import described
from hilboost.model.fitted import FittedModel

_IN_WORDS = {
    "tree": "trees",
    "vector_tree": "trees",
    "full": "kernel machine",
    "sparse": "sparse kernel machine",
    "block": "kernel machine on blocks of rows",
    "metric_kernel": "kernel machine with a learned metric",
    "linear": "linear function",
}


def summary(fitted: FittedModel) -> str:
    """Describe a model in one line, such as "trees × 4 folds, 266 stages of 1,500"."""
    mixture = described(fitted.parts)
    n_stages = fitted.n_stages
    if is_forest(fitted):
        return counted(n_stages, "tree")
    if mixture is None:
        text = _named(fitted)
    else:
        text, n_stages = mixture, n_stages - 1  # the last one is the kernel machine
    n_folds = _n_members(fitted)
    if n_folds > 1:
        text += f"{', ' if mixture else ' × '}{n_folds} folds"
    if n_stages or mixture is None:
        text += f", {n_stages:,} stage" + "s" * (n_stages != 1) + _of(fitted, n_stages)
    return text + _without_kernel(fitted) * (mixture is None)


def _without_kernel(fitted: FittedModel) -> str:
    """Say why trees remained without a kernel machine."""
    if "kernel" in fitted.cut_short:
        whole = "a" if fitted.parts is None else "the whole"
        return f"; the time budget left no room for {whole} kernel machine"
    return "" if fitted.parts is None else "; a kernel machine was tried, without gain"


def is_forest(fitted: FittedModel) -> bool:
    """Whether the model is a tree or a forest, which has no stages."""
    return fitted.history is None and fitted.learner.capabilities.constant_on_leaves


def _n_members(fitted: FittedModel) -> int:
    """Count the members of an ensemble, in a model of a file by the terms of the first stage."""
    if fitted.resolved is None or fitted.resolved.cv_folds == 1 or not fitted.model.stages:
        return 1
    return sum(term.columns.start == 0 for term in fitted.model.stages[0].terms)


def _named(fitted: FittedModel) -> str:
    """Name what the learners of a model fit, and the kernel and size of kernel machines."""
    if names := fitted.learner.capabilities.learner_names:
        return ", ".join(names)
    models = (term.model.described() for stage in fitted.model.stages for term in stage.terms)
    name = fitted.learner.name or next(models, type(fitted.learner).__name__)
    kind = _IN_WORDS.get(name, name)
    machine, n_centers = fitted.kernel_machine, fitted.model.n_basis
    kernel = None if machine is None else machine.kernel
    about = [] if kernel is None else [f"{type(kernel).__name__} kernel"]
    about += [f"{n_centers:,} centers"] if n_centers else []
    return f"{kind} ({', '.join(about)})" if about else kind


def _of(fitted: FittedModel, n_stages: int) -> str:
    """Say how many stages there might have been."""
    resolved, history = fitted.resolved, fitted.history
    if fitted.cut_from is not None:
        return f" of {fitted.cut_from:,}"
    of = "" if resolved is None else f" of {resolved.n_estimators:,}"
    if "stages" in fitted.cut_short:
        return of + " (ended by the time budget)"
    if resolved is None or n_stages >= resolved.n_estimators:
        return ""
    stopped = history is not None and history.validation is not None
    return of + " (stopped early)" * stopped


def not_of_trees(fitted: FittedModel) -> str:
    """Say, for messages, which learner made a model that does not consist of trees alone."""
    mixture = described(fitted.parts)
    if mixture is None:
        return f"this model has another learner: {_named(fitted)}"
    return f"the automatic learner of this model chose {mixture}"

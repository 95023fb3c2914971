"""New leaf values for the trees of a fitted model, from other rows."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from hilboost.backends.exact_sums import masses_of_groups, sums_of_groups
from hilboost.backends.threads import ThreadTeam
from hilboost.boosting.evaluate import gradients
from hilboost.boosting.units import in_own_units
from hilboost.core.base_model import Stage, Term
from hilboost.core.dtypes import Floats
from hilboost.core.errors import IncompatibleParts, InvalidParameter, shown
from hilboost.core.gradients import Gradients
from hilboost.core.learner import splits_of
from hilboost.core.loss import Loss
from hilboost.core.target import Target
from hilboost.engine import criterion_of, leaf_values
from hilboost.model import AdditiveModel
from hilboost.model.additive import members_of
from hilboost.model.fitted import FittedModel
from hilboost.model.summary import not_of_trees
from hilboost.training.data import TrainingData
from hilboost.training.initial_state import start_of


def refit_leaves(
    fitted: FittedModel, data: TrainingData, keep: float, n_threads: int
) -> FittedModel:
    """Return a model of trees with leaf values of new rows; the splits remain the same.

    Stage by stage, the value of a leaf becomes ``keep`` times the old one plus ``1 - keep`` times
    the Newton step of its new rows, with the learning rate of the fit.  Leaves without new rows
    keep their value.
    """
    _check(fitted, keep)
    assert fitted.resolved is not None
    rate, l2 = fitted.resolved.learning_rate, fitted.resolved.l2_regularization
    begun = start_of(fitted.loss, data)
    X, target, units = fitted.encode_inputs(data.X), begun.data.target, begun.units
    factor = np.broadcast_to(1.0 if units is None else units.factor, begun.initial_raw.shape)
    start = in_own_units(units, AdditiveModel(begun.initial_raw, ())).initial_raw
    start = keep * fitted.model.initial_raw + (1 - keep) * start
    raw = target.starting_raw(start if units is None else units.raw_in_fit(start)).copy()
    stages = []
    with ThreadTeam(n_threads) as team:
        for stage in fitted.model.stages:
            loss = begun.loss.adapted(target, raw)
            now, terms = gradients(loss, target, raw, team), []
            added = np.zeros_like(raw)
            for term in stage.terms:
                share = rate / sum(other.columns == term.columns for other in stage.terms)
                leaves = term.model.leaves(X)
                steps, filled = _steps(loss, target, raw, now, term, leaves, l2)
                coefficient = term.coefficient / factor[term.columns]
                old = coefficient * term.model.values
                changed = filled & (coefficient != 0)  # a line search may end at zero
                new = np.where(changed, keep * old + (1 - keep) * share * steps, old)
                added[:, term.columns] += new[leaves]
                values = new / np.where(coefficient == 0, 1.0, coefficient)
                terms.append(term.with_model(term.model.with_values(values)))
            raw += added
            stages.append(Stage(tuple(terms)))
    model = AdditiveModel(start, tuple(stages))
    members = None
    if fitted.members is not None and not fitted.last_is_model:
        members = tuple(members_of(model, len(fitted.members)))
    return replace(fitted, model=model, members=members, calibration=None, kept=None, units=None)


def _check(fitted: FittedModel, keep: float) -> None:
    if not Interval(Real, 0, 1, closed="both").is_satisfied_by(keep):
        raise InvalidParameter(f"keep must be a number between 0 and 1; got {shown(keep)}.")
    terms = [term for stage in fitted.model.stages for term in stage.terms]
    if fitted.resolved is None or any(term.model.family != "trees" for term in terms):
        raise IncompatibleParts(
            f"refit_leaves requires a model of trees, but {not_of_trees(fitted)}; use "
            "learner='tree', or learner_part('tree')."
        )
    if any(any(splits.monotonic) for splits in splits_of(fitted.learner)):
        raise IncompatibleParts(
            "refit_leaves does not support monotonic_cst, because new values may be in another "
            "order; fit a new model."
        )


def _steps(
    loss: Loss,
    target: Target,
    raw: Floats,
    now: Gradients,
    term: Term,
    leaves: NDArray[np.int32],
    l2: float,
) -> tuple[Floats, NDArray[np.bool_]]:
    """Best values of the leaves, (n_leaves, c), and whether new rows are there, (n_leaves, 1)."""
    n_leaves, weight, columns = len(term.model.values), target.weight, term.columns
    filled = np.bincount(leaves, minlength=n_leaves)[:, None] > 0
    if loss.has_leaf_values:
        return loss.leaf_values(target, raw, leaves, n_leaves, columns), filled
    ones = np.ones(len(raw))
    top, bottom, steps = np.empty((3, n_leaves, columns.stop - columns.start))
    for place, k in enumerate(range(columns.start, columns.stop)):
        hessian = ones if now.hessian is None else now.hessian[:, k]
        top[:, place] = sums_of_groups(leaves, now.negative_gradient[:, k], weight, n_leaves)
        bottom[:, place] = sums_of_groups(leaves, hessian, weight, n_leaves)
    mass = masses_of_groups(leaves, weight, n_leaves)
    leaf_values(top, bottom, mass, criterion_of(l2), None, steps)
    return steps, filled

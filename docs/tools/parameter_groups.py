"""Divide the long lists of parameters of estimators into groups with titles."""

from __future__ import annotations

from typing import Any

import griffe

FEWEST = 18  # parameters of a list that is divided
GROUPS = {
    "Model": (
        "loss quantile class_weight k gain ties distribution n_intervals output learner kernel "
        "stages n_estimators learning_rate regularization length_scale_factors"
    ),
    "Trees": (
        "max_leaf_nodes max_splits max_depth growth min_samples_leaf min_hessian l2_regularization "
        "min_gain max_features max_features_per_tree max_bins"
    ),
    "Choice of kernel parameters and basis vectors": (
        "tuning n_basis subset_size selection n_candidates"
    ),
    "Solver": "solver cg_iterations max_iter penalty reweight refit_every",
    "Samples of the rows": "subsample bootstrap n_shards",
    "Several outputs": "multi_output sketch decode metric",
    "Constraints and columns": (
        "monotonic_cst interaction_cst categorical_features target_encoding standardize"
    ),
    "Early stopping and step lengths": (
        "line_search early_stopping cv_folds validation validation_gap validation_fraction "
        "n_iter_no_change tol eval_metric"
    ),
    "Computation": (
        "time_budget memory_budget precision device warm_start random_state n_jobs verbose"
    ),
}
TITLE_OF = {name: title for title, names in GROUPS.items() for name in names.split()}


def divided(section: Any) -> list[Any]:
    """Return one section for each group of parameters, in the order of the groups."""
    found = []
    for title in GROUPS:
        values = [value for value in section.value if TITLE_OF[value.name] == title]
        if values:
            found.append(griffe.DocstringSectionParameters(values, title=f"Parameters: {title}"))
    return found


class ParameterGroups(griffe.Extension):
    """Divide the sections of parameters when the package is loaded."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Process all estimators, whose parameters griffe finds as those of dataclasses."""
        modules = *pkg["estimators"].modules.values(), *pkg["network"].modules.values()
        classes = [one for module in modules for one in module.classes.values() if not one.is_alias]
        for decorator in (decorator for one in classes for decorator in one.decorators):
            if str(decorator.value) == "with_parameters":
                decorator.value = griffe.ExprName("dataclass", griffe.ExprName("dataclasses"))
        griffe.DataclassesExtension().on_package(pkg=pkg)
        for one in classes:
            if one.docstring:
                self._process(one.docstring)

    def _process(self, docstring: griffe.Docstring) -> None:
        sections = docstring.parse("numpy")
        found: list[Any] = []
        for section in sections:
            is_list = section.kind is griffe.DocstringSectionKind.parameters
            long = is_list and len(section.value) >= FEWEST
            found += divided(section) if long else [section]
        docstring.__dict__["parsed"] = found

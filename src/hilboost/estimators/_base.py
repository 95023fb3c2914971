"""What the regressor and the classifier share: parameters to parts, the fit, raw predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from hilboost.backends.team import Team
from hilboost.boosting import EarlyStopping, Plan, Progress, RowSampling
from hilboost.callbacks import Checkpoint
from hilboost.core.contracts import Callback, CellLoss, Learner, Loss, Rule
from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType, unknown_name
from hilboost.core.records import Floats, Target
from hilboost.encoders import Encoder, Encoding
from hilboost.estimators._labels import Classes
from hilboost.estimators._shell import Shell
from hilboost.estimators.categories import check_continued, placed, told_of_categories
from hilboost.estimators.checkpoints import (
    Identity,
    Writer,
    check_width,
    checkpoint_among,
    resume,
)
from hilboost.estimators.checks import check_learner, learner_name, warn_of_light_weights
from hilboost.estimators.constraints import interaction_groups, monotonic_directions
from hilboost.estimators.defaults import Resolved, resolve
from hilboost.estimators.fitting import (
    Begun,
    Fit,
    boost_until_interrupted,
    pass_interrupt_on,
    try_out_max_features,
)
from hilboost.estimators.printing import with_printer
from hilboost.learners.kernel_machine import Setting, SparseLearner
from hilboost.learners.tree import Forest, TreeLearner
from hilboost.learners.wrapped import WrappedLearner
from hilboost.losses import OneHotSquaredError, SquaredError
from hilboost.losses.partly_known import PartlyKnown, takes_gaps
from hilboost.model import mean_of
from hilboost.rules import LineSearch, ReestimateCells, Shrinkage
from hilboost.tables import category_columns

_AUTO = StrOptions({"auto"})
# Losses whose Newton step a kernel machine solves for exactly.
_NEWTON = (SquaredError, OneHotSquaredError)


class BaseBoosting(Shell):
    """The shell around the loop; not to be used by itself."""

    _resolved: Resolved
    _encoding: Encoding | None = None
    _can_resume = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learning_rate": [_AUTO, Interval(Real, 0, None, closed="neither")],
        "n_estimators": [_AUTO, Interval(Integral, 1, None, closed="left")],
        "max_leaf_nodes": [_AUTO, Interval(Integral, 2, None, closed="left"), None],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "min_samples_leaf": [_AUTO, Interval(Real, 0, None, closed="neither")],
        "min_hessian": [Interval(Real, 0, None, closed="left")],
        "l2_regularization": [_AUTO, Interval(Real, 0, None, closed="left")],
        "min_gain": [Interval(Real, 0, None, closed="left")],
        "max_features": [_AUTO, Interval(Real, 0, 1, closed="right")],
        "max_features_per_tree": [Interval(Real, 0, 1, closed="right")],
        "max_bins": [Interval(Integral, 2, 255, closed="both")],
        "subsample": [_AUTO, Interval(Real, 0, 1, closed="right")],
        "bootstrap": ["boolean"],
        "multi_output": [StrOptions({"separate", "shared"})],
        "sketch": [Interval(Integral, 1, None, closed="left"), None],
        "monotonic_cst": ["array-like", dict, None],
        "interaction_cst": [StrOptions({"pairwise", "no_interactions"}), list, tuple, None],
        "categorical_features": [str, "array-like", None],
        "target_statistics": [_AUTO, "boolean"],
        "line_search": [_AUTO, "boolean"],
        "early_stopping": [_AUTO, "boolean"],
        "cv_folds": [_AUTO, Interval(Integral, 1, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [_AUTO, Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        loss: str | Loss | type[Loss],
        *,
        learner: str | Learner | Any = "tree",
        learning_rate: float | str = "auto",
        n_estimators: int | str = "auto",
        max_leaf_nodes: int | str | None = "auto",
        max_depth: int | None = None,
        min_samples_leaf: float | str = "auto",
        min_hessian: float = 1e-3,
        l2_regularization: float | str = "auto",
        min_gain: float = 0.0,
        max_features: float | str = "auto",
        max_features_per_tree: float = 1.0,
        max_bins: int = 255,
        subsample: float | str = "auto",
        bootstrap: bool = False,
        multi_output: str = "separate",
        sketch: int | None = None,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        categorical_features: Any = "from_dtype",
        target_statistics: bool | str = "auto",
        line_search: bool | str = "auto",
        early_stopping: bool | str = "auto",
        cv_folds: int | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int | str = "auto",
        tol: float = 0.0,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int | bool = 0,
    ) -> None:
        self.loss = loss
        self.learner = learner
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.min_hessian = min_hessian
        self.l2_regularization = l2_regularization
        self.min_gain = min_gain
        self.max_features = max_features
        self.max_features_per_tree = max_features_per_tree
        self.max_bins = max_bins
        self.subsample = subsample
        self.bootstrap = bootstrap
        self.multi_output = multi_output
        self.sketch = sketch
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.categorical_features = categorical_features
        self.target_statistics = target_statistics
        self.line_search = line_search
        self.early_stopping = early_stopping
        self.cv_folds = cv_folds
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(
        self,
        X: Floats,
        target: Target,
        held_out: tuple[Floats, Target] | None,
        continued: Progress | None,
        callbacks: Sequence[Callback],
    ) -> None:
        if continued is None:
            self._encoding = None
        else:
            check_continued(self._schema, X)
        fit = self._started(X, target, held_out, continued)
        checkpoint = checkpoint_among(callbacks)
        if checkpoint is not None:
            identity, fit, continued = self._resume(checkpoint, fit, continued)
        n_trees = 1 if self.multi_output == "shared" else len(fit.start)
        parameters = self.get_params(deep=False)
        if continued is not None:
            # A continued fit goes on with what the first one chose.
            parameters = self._resolved.fill(parameters)
        chosen = resolve(
            parameters,
            target.total_weight(),
            X.shape[1],
            n_trees,
            held_out is not None,
            self.learner,
            isinstance(fit.loss, CellLoss),
            self._has_two_classes(fit.loss),
        )
        early = chosen.early_stopping
        n_folds = min(chosen.cv_folds, len(X)) if early and held_out is None else 1
        if isinstance(self.learner, str | SparseLearner) and self.learner != "tree":
            n_folds = 1  # a kernel machine remembers one function
        if early and held_out is None and n_folds == 1:
            fit = fit.hold_out(self.validation_fraction)
        learner = self._make_learner(chosen)
        name = f"learner {learner_name(self.learner)}"
        check_learner(learner, self._schema, name, "set learner='tree'")
        if isinstance(learner, TreeLearner):
            learner = _told_of_gaps(learner, fit.loss)
            fit = self._with_encoder(fit, learner)
            if fit.encoder is not None:
                learner = told_of_categories(learner, fit.encoder, self._schema)
            warn_of_light_weights(fit.target.weight, learner.min_samples_leaf)
        n_threads = self._n_threads(fit.X.size * n_trees * n_folds)
        plan = Plan(
            loss=fit.loss,
            learner=learner,
            rules=self._make_rules(fit.loss, learner, chosen),
            n_stages=chosen.n_estimators,
            sampling=RowSampling(chosen.subsample, self.bootstrap),
            stopping=EarlyStopping(chosen.n_iter_no_change, self.tol) if early else None,
            callbacks=with_printer(callbacks, self.verbose),
            seed=fit.seed,
        )
        if checkpoint is not None and continued is not None:
            check_width(checkpoint, continued, fit.width)
        begun = fit.begin(plan, n_threads, n_folds, continued, self._encoding)
        progress, validation = begun.progress, begun.validation
        self._encoding = begun.encoding
        target, n_columns = fit.target, begun.seen[0].shape[1]
        with Team(n_threads) as team:
            data = _prepare(learner, begun, target, fit.seed, n_threads if n_folds == 1 else 1)
            try:
                own = isinstance(self.learner, str) and isinstance(learner, TreeLearner)
                tries = self.max_features == "auto" and own
                if early and continued is None and tries:
                    plan = try_out_max_features(plan, data, target, progress, team, validation)
                if isinstance(plan.learner, TreeLearner):
                    chosen = replace(chosen, max_features=plan.learner.max_features)
                if checkpoint is not None:
                    writer = Writer(checkpoint, identity, fit.seed, chosen, progress, n_columns)
                    plan = writer.in_place_of(checkpoint, plan)
                boost_until_interrupted(plan, data, target, progress, team, validation)
            finally:
                _close(learner, data, progress)
        self._resolved = chosen
        self._keep(plan, progress)
        self._place_members()
        pass_interrupt_on(progress, self.n_estimators_)

    def _with_encoder(self, fit: Fit, learner: TreeLearner) -> Fit:
        """The fit, told which columns hold categories and how trees see them."""
        columns = category_columns(self._schema)
        if not columns:
            return fit
        n_classes = len(self.classes_) if isinstance(self, Classes) else None
        auto = self.target_statistics == "auto"
        by_mean = True if learner.shared and auto else self.target_statistics
        encoder = Encoder.of(fit.X, columns, fit.target, n_classes, by_mean, learner.groups)
        return replace(fit, encoder=encoder)

    def _place_members(self) -> None:
        if self._encoding is not None and self._members is not None:
            self.model_ = mean_of(
                [placed(self._encoding, k, model) for k, model in enumerate(self._members)]
            )

    def _checked(self, X: Any) -> Floats:
        X = super()._checked(X)
        return X if self._encoding is None else self._encoding.encode(X)

    def _has_two_classes(self, loss: Loss) -> bool:
        """Two, and a loss of their chances."""
        squared = isinstance(loss, OneHotSquaredError)
        return isinstance(self, Classes) and len(self.classes_) == 2 and not squared

    def _resume(
        self, checkpoint: Checkpoint, fit: Fit, continued: Progress | None
    ) -> tuple[Identity, Fit, Progress | None]:
        """What the fit is told by, and where it stands: at its checkpoint, if there is one."""
        if self.learner != "tree" and not isinstance(self.learner, TreeLearner):
            raise InvalidParameter(
                f"Checkpoint works with trees; the learner is {self.learner!r}. Set "
                "learner='tree', or leave Checkpoint out."
            )
        if continued is not None:
            raise InvalidParameter(
                "warm_start goes on from the stages in memory and Checkpoint from those in its "
                "file; set warm_start=False, or leave Checkpoint out."
            )
        identity = Identity.of(self.get_params(deep=False), fit, self._schema)
        resumed = resume(checkpoint, identity)
        if resumed is None:
            return identity, fit, None
        self._resolved, self._fitted_seed = resumed.chosen, resumed.seed
        return identity, replace(fit, seed=resumed.seed), resumed.progress

    def _takes_gaps(self) -> bool:
        trees = isinstance(self.learner, TreeLearner) or self.learner == "tree"
        return trees and takes_gaps(self._make_loss())

    def _takes_sparse(self) -> bool:
        learner = self.learner
        if isinstance(learner, str):
            return learner == "tree"
        return isinstance(learner, Learner) and learner.takes_sparse

    def _make_learner(self, chosen: Resolved) -> Learner:
        learner = self.learner
        if not (isinstance(learner, str) and learner == "tree"):
            for name in ("monotonic_cst", "interaction_cst"):
                if getattr(self, name) is not None:
                    raise InvalidParameter(
                        f"{name} works with the built-in trees only; set learner='tree', or "
                        f"{name}=None."
                    )
        if isinstance(learner, Learner):
            return learner
        if isinstance(learner, str):
            if learner not in ("tree", "kernel"):
                raise unknown_name("learner", learner, ["tree", "kernel"])
            if learner == "kernel":
                if self.warm_start:
                    raise InvalidParameter(
                        "warm_start works with trees; a kernel machine penalises the whole "
                        "function and cannot go on from its stages. Set warm_start=False."
                    )
                columns = tuple(column for column, _ in category_columns(self._schema))
                return SparseLearner(Setting(categorical=columns))
            if self.sketch is not None and self.multi_output != "shared":
                raise InvalidParameter(
                    "sketch works on shared trees only; set multi_output='shared', or sketch=None."
                )
            return self._tree_learner(chosen)
        if isinstance(learner, type) or not (
            hasattr(learner, "fit") and hasattr(learner, "predict")
        ):
            raise InvalidType(
                "learner must be 'tree', 'kernel', a Learner or a scikit-learn regressor; got "
                f"{learner!r}."
            )
        return WrappedLearner(learner)

    def _tree_learner(self, chosen: Resolved) -> TreeLearner:
        d, names = self.n_features_in_, getattr(self, "feature_names_in_", None)
        monotonic = monotonic_directions(self.monotonic_cst, d, names)
        if monotonic and self.sketch is not None:
            raise InvalidParameter(
                "monotonic_cst needs trees that see every output, and sketch=... grows them on "
                "mixtures; set sketch=None."
            )
        return TreeLearner(
            max_leaf_nodes=chosen.max_leaf_nodes,
            max_depth=self.max_depth,
            min_samples_leaf=chosen.min_samples_leaf,
            min_hessian=self.min_hessian,
            l2_regularization=chosen.l2_regularization,
            min_gain=self.min_gain,
            max_features=chosen.max_features,
            max_features_per_tree=self.max_features_per_tree,
            max_bins=self.max_bins,
            shared=self.multi_output == "shared",
            sketch=self.sketch,
            monotonic=monotonic,
            groups=interaction_groups(self.interaction_cst, d),
        )

    def _make_rules(self, loss: Loss, learner: Learner, chosen: Resolved) -> list[Rule]:
        has_cells = isinstance(learner, TreeLearner)
        steps = has_cells or (isinstance(learner, SparseLearner) and type(loss) in _NEWTON)
        rules: list[Rule] = []
        if has_cells and isinstance(loss, CellLoss):
            rules.append(ReestimateCells())
        if self.line_search is True or (self.line_search == "auto" and not steps):
            rules.append(LineSearch())
        rules.append(Shrinkage(float(chosen.learning_rate)))
        for rule in rules:
            rule.check(loss, learner)
        return rules

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Leaf of every row in every tree.

        Parameters
        ----------
        X : array-like (n, d)

        Returns
        -------
        (n, n_trees) int32
            Trees in the order in which they were fitted, output by output within a stage.

        Raises
        ------
        InvalidData
            The base learner is not a tree.
        """
        X = self._checked(X)
        forest = self._forest()
        if forest is None:
            return np.empty((len(X), 0), dtype=np.int32)
        return forest.cells(X, self._n_threads(len(X) * len(forest.depths)))

    @property
    def feature_importances_(self) -> Floats:
        """Part of the total gain of all splits that each column brought, (d,); sums to one."""
        check_is_fitted(self)
        encoding = self._encoding
        gains = np.zeros(self.n_features_in_ if encoding is None else encoding.full_width)
        self._forest()
        for stage in self.model_.stages:
            for part in stage.parts:
                tree: Any = part.model
                np.add.at(gains, tree.column, tree.gain)
        if encoding is not None:
            gains = encoding.attributed(gains)
        total = gains.sum()
        return gains / total if total > 0 else gains

    def _forest(self) -> Forest | None:
        if not isinstance(self.learner_, TreeLearner):
            raise InvalidData(
                f"this needs a model of trees; its learner is {type(self.learner_).__name__}."
            )
        sums = self.model_.summations()
        return sums[0] if sums and isinstance(sums[0], Forest) else None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = isinstance(self.learner, str) and self.learner == "tree"
        tags.input_tags.sparse = self._takes_sparse()
        return tags


def _told_of_gaps(learner: TreeLearner, loss: Loss) -> TreeLearner:
    """Where the hessian counts the rows whose target is known, leaves must have enough of these."""
    if isinstance(loss, PartlyKnown) and isinstance(loss.loss, SquaredError):
        fewest = max(learner.min_hessian, float(learner.min_samples_leaf))
        return replace(learner, min_hessian=fewest)
    return learner


def _prepare(learner: Learner, begun: Begun, target: Target, seed: int, n_threads: int) -> Any:
    """The learner's data of the first member; others get their own where they see other inputs."""
    first = begun.seen[0]
    data = learner.prepare(first, target.weight, seed, n_threads)
    for member, X in zip(begun.progress.members, begun.seen, strict=True):
        member.data = data if X is first else learner.prepare(X, target.weight, seed, n_threads)
    return data


def _close(learner: Learner, data: Any, progress: Progress) -> None:
    learner.close(data)
    for member in progress.members:
        if member.data is not data:
            learner.close(member.data)
        member.data = None

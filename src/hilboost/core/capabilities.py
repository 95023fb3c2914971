"""Record of what a learner supports, division of its data, and the settings of its splits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from hilboost.core.base_model import BaseModel, Term
from hilboost.core.dtypes import Floats
from hilboost.core.exchange import RowShare


class RowDivision(ABC):
    """Base class of what divides the prepared data of a learner by rows.

    Stages can then learn from parts of the rows in turn.
    """

    @abstractmethod
    def divided(self, data: Any, ranges: Sequence[slice]) -> list[Any]:
        """Return the ``data`` of each of several ranges of the rows.

        Parameters
        ----------
        data : object
            Result of ``prepare`` of the learner; not used afterwards.
        ranges : sequence of slice
            Consecutive ranges that cover all rows.

        Returns
        -------
        list of object
        """

    @abstractmethod
    def joined(self, parts: Sequence[Any]) -> Any:
        """Return the ``data`` of neighboring ranges together.

        Parameters
        ----------
        parts : sequence of object
            Some results of :meth:`divided`, or of this method, in their order.

        Returns
        -------
        object
        """

    @abstractmethod
    def prepared_like(self, data: Any, X: Any) -> Any:
        """Prepare other rows as the rows of ``data`` are.

        Parameters
        ----------
        data : object
            Result of ``prepare`` of the learner.
        X : (m, d) float64, or a table that is read in blocks

        Returns
        -------
        object
            For :meth:`add_outputs`.
        """

    @abstractmethod
    def add_outputs(self, data: Any, terms: Sequence[Term], raw: Floats, n_threads: int) -> None:
        """Add the outputs of base models to ``raw``, for the rows of a part of the data.

        The same bits as with ``sum_of`` of the base models on the inputs.

        Parameters
        ----------
        data : object
            A result of :meth:`divided`, :meth:`joined` or :meth:`prepared_like`.
        terms : sequence of Term
            Base models that the learner has fitted, with their coefficients.
        raw : (n, r) float64
            Modified in place.
        n_threads : int
        """


PrepareAmongWorkers = Callable[[Any, Any, Floats | None, int, int, RowShare], Any]
"""Takes a learner, the arguments of its ``prepare``, and what connects the workers.

The rows are those that are here, or all rows if workers divide kernel values.
"""


@dataclass(frozen=True)
class SplitSettings:
    """Settings of a learner that depend on the columns and the target of a table.

    Trees declare theirs by ``Capabilities(splits=...)``.  A recipe replaces them, and passes them
    to :meth:`hilboost.core.learner.Learner.for_table`.

    Attributes
    ----------
    categorical : tuple of (int, int)
        Columns of category codes with their numbers of levels.
    monotonic : tuple of int
        Monotonic direction of each column; empty if no column has one.
    groups : tuple of tuple of int
        Groups of columns that may interact; empty if all may.
    min_samples_leaf : float
        Minimum sum of weights in a leaf.
    min_hessian : float
        Minimum sum of hessians in a leaf.  Hessians may count known targets; then a recipe sets it
        to at least ``min_samples_leaf``.
    splits_levels : bool
        Whether splits on levels are supported; otherwise, categories are target-encoded.
    """

    categorical: tuple[tuple[int, int], ...] = ()
    monotonic: tuple[int, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    min_samples_leaf: float = 0.0
    min_hessian: float = 0.0
    splits_levels: bool = True


@dataclass(frozen=True)
class Capabilities:
    """Support and requirements of a learner: the attribute ``capabilities`` of its class.

    Estimators, rules, model files and exports depend on this record, not on the class of a learner.

    Attributes
    ----------
    base_model : type or None
        Class of all base models, if it is known in advance.
    layout : {"F", "C"}
        Memory layout of ``raw`` and gradients: ``"C"`` if one base model has many outputs.
    constant_on_leaves : bool
        Whether all base models are constant on leaves.
    takes_missing_values, takes_infinity : bool
        Whether NaN or infinity in the inputs is allowed.
    takes_missing_targets : bool
        Whether the learner treats zero gradients as missing targets.
    takes_categories : bool
        Whether columns may contain category codes.
    takes_sparse : bool
        Whether ``prepare`` and the base models support sparse tables.
    takes_samples : bool
        Whether stages can be fitted to samples of the rows.
    encodes_categories : bool
        Whether category columns are target-encoded, or split by subsets of levels.
    reads_blocks : bool
        Whether ``prepare`` and the base models read tables that are not an array of floats; see
        :class:`hilboost.tables.BlockTable`.
    works_on_folds : bool
        Whether the learner can be fitted to a part of the prepared rows, as in ``cv_folds``.
    newton_steps : bool
        Whether outputs are Newton steps, which need no line search.
    penalizes : bool
        Whether stages decrease a penalized objective and report the change of the penalty.
    fits_curvature : bool
        Whether it is fitted to the gradients of ``Loss.with_curvature``; implied by ``penalizes``.
    keeps_gradients : bool
        Whether gradients may be read after ``fit``; the next stage overwrites them otherwise.
    derives_hessian : bool
        Whether ``fit`` takes gradients that are ``logistic``, without a hessian; a subclass of
        ``TreeLearner`` that reads ``gradients.hessian`` declares ``False``.
    has_state : bool
        Whether a stage depends on earlier ones by more than the gradients: see ``snapshot``.
    continues : bool
        Whether ``warm_start`` can add stages to an earlier fit; not to stages that penalize, unless
        the learner ``has_state``.
    resumable : bool
        Whether a fit can be continued from the base models alone.
    in_checkpoints : bool
        Whether files can store a fit that is not complete; implied by ``resumable``.
    row_division : RowDivision or None
        Divides the prepared data by rows, so that stages can learn from parts of them.
    prepare_among_workers : callable or None
        Prepares the rows of one of several workers.  It takes the learner, the arguments of
        ``prepare``, and what connects the workers (:class:`hilboost.core.exchange.RowShare`).
    on_threads : callable or None
        Takes prepared data and threads (:class:`hilboost.backends.threads.ThreadTeam`), and returns
        the data for a fit on these threads, which may run beside other fits to the same data.
    splits : callable or None
        Returns the :class:`hilboost.core.capabilities.SplitSettings` of the learner; only for
        trees whose minimum weights, constraints and categories recipes adapt to the table.
    learner_names : tuple of str
        Names of the learners that each stage chooses from; empty if there is only one.
    """

    base_model: type[BaseModel] | None = None
    layout: Literal["F", "C"] = "F"
    constant_on_leaves: bool = False
    takes_missing_values: bool = False
    takes_infinity: bool = False
    takes_missing_targets: bool = False
    takes_categories: bool = False
    takes_sparse: bool = False
    takes_samples: bool = True
    encodes_categories: bool = False
    reads_blocks: bool = False
    works_on_folds: bool = True
    newton_steps: bool = False
    penalizes: bool = False
    fits_curvature: bool = False
    keeps_gradients: bool = True
    derives_hessian: bool = False
    has_state: bool = False
    continues: bool = True
    resumable: bool = False
    in_checkpoints: bool = False
    row_division: RowDivision | None = None
    prepare_among_workers: PrepareAmongWorkers | None = None
    on_threads: Callable[[Any, Any], Any] | None = None
    splits: Callable[[Any], SplitSettings] | None = None
    learner_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Set what other fields imply."""
        continues = self.continues and (self.has_state or not self.penalizes)
        object.__setattr__(self, "fits_curvature", self.fits_curvature or self.penalizes)
        object.__setattr__(self, "continues", continues)
        object.__setattr__(self, "in_checkpoints", self.in_checkpoints or self.resumable)


DECLARED = tuple(field.name for field in fields(Capabilities))
FLAGS = tuple(field.name for field in fields(Capabilities) if field.type == "bool")


def of_any(parts: Sequence[Capabilities]) -> Capabilities:
    """Return the capabilities of a learner each of whose stages is fitted by one of its parts.

    Parameters
    ----------
    parts : sequence of Capabilities

    Returns
    -------
    Capabilities
    """
    common: dict[str, Any] = {name: all(getattr(part, name) for part in parts) for name in FLAGS}
    return replace(
        Capabilities(**common),
        layout="C" if all(part.layout == "C" for part in parts) else "F",
        encodes_categories=any(part.encodes_categories for part in parts),
        works_on_folds=common["takes_samples"],  # each member has data of its own
        reads_blocks=False,
        keeps_gradients=True,
        derives_hessian=False,
        has_state=True,
        resumable=False,
    )

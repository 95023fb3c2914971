"""Interface of learners that split rows by thresholds, such as trees."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

from hilboost.core.learner import Learner


class SplittingLearner(Learner):
    """Base class of tree learners that table recipes adapt to weights, constraints and categories.

    The family of the base models is "trees".
    """

    min_samples_leaf: float = 0.0
    """Minimum sum of weights in a leaf."""

    monotonic: tuple[int, ...] = ()
    """Monotonic direction of each column; empty if no column has one."""

    groups: tuple[tuple[int, ...], ...] = ()
    """Groups of columns that may interact; empty if all may."""

    categorical: tuple[tuple[int, int], ...] = ()
    """Columns of category codes with their numbers of levels."""

    @property
    def divides_levels(self) -> bool:
        """Whether splits on levels are supported; otherwise, categories are target-encoded."""
        return True

    @abstractmethod
    def counting(self, row: float) -> Self:
        """Return a learner whose constants are adapted to rows of this weight.

        Parameters
        ----------
        row : float
            Weight that counts as one row.

        Returns
        -------
        SplittingLearner
        """

    @abstractmethod
    def counting_targets(self) -> Self:
        """Return a learner that requires enough known targets, which hessians count, in each leaf.

        Returns
        -------
        SplittingLearner
        """

    def share_of_columns(self, d: int) -> float:
        """Return the fraction of the columns that are considered at each node; by default, all.

        Parameters
        ----------
        d : int
            Number of columns.

        Returns
        -------
        float in (0, 1]
        """
        return 1.0

    @abstractmethod
    def for_trial(self, max_features: float, l2_factor: float, max_leaf_nodes: int) -> Self:
        """Return a learner with other settings, which a trial run compares with these.

        Parameters
        ----------
        max_features : float in (0, 1]
            Fraction of the columns that are considered at each node.
        l2_factor : float
            Factor of the L2 penalty, if there is one.
        max_leaf_nodes : int

        Returns
        -------
        SplittingLearner
        """

    @abstractmethod
    def with_columns(
        self,
        categorical: tuple[tuple[int, int], ...],
        monotonic: tuple[int, ...],
        groups: tuple[tuple[int, ...], ...],
    ) -> Self:
        """Return a learner for a table with other columns.

        Parameters
        ----------
        categorical, monotonic, groups : tuple
            See the attributes of the same names.

        Returns
        -------
        SplittingLearner
        """


def splitting_parts(learner: Learner) -> tuple[SplittingLearner, ...]:
    """Return the tree learners among the learners that each stage chooses from."""
    return tuple(part for part in learner.parts if isinstance(part, SplittingLearner))

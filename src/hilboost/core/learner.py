"""Interface of base learners."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from hilboost.core.base_model import Stage, Term
from hilboost.core.capabilities import DECLARED, Capabilities, SplitSettings
from hilboost.core.dtypes import Floats
from hilboost.core.errors import InvalidParameter
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.gradients import Gradients
from hilboost.core.records import without_caches
from hilboost.core.row_sample import RowSample
from hilboost.core.several_stages import FittedStages, StageRequest

_REPLACED = {
    "among_workers": "declare Capabilities(prepare_among_workers=...)",
    "choose_penalty_by": "let for_members take the function",
    "draws": "fit always gets a generator",
    "for_member": "define for_members, which returns the data of all members",
    "for_trials": "trial runs compare the parts of a MixedLearner by themselves",
    "in_series": "define fit_stages",
    "names": "combine learners by a MixedLearner, which has names",
    "other_stage_added": "define stage_added, whose stage is None then",
    "rounded": "return terms from fit that are already rounded",
    "seeing_categories": "define for_table",
    "splitting": "declare Capabilities(splits=...) and define for_table",
    "takes_series": "define fit_stages",
    "tuned_briefly": "declare a shorter search as a parameter",
    "with_parts": "combine learners by a MixedLearner, whose learners can be changed",
}
"""Members of earlier versions, and what to do instead."""


class Learner(ABC):
    """Base class of learners, which fit base models to gradients.

    A learner has no access to the labels, the loss or earlier stages.
    """

    in_files: ClassVar[bool] = False
    """Whether model files store the class name and the parameters.

    Only for built-in learners.  Each class has to declare it; it is not inherited.
    """

    name: ClassVar[str | None] = None
    """Name in model files and reports, for built-in learners."""

    __getstate__ = without_caches

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Reject declarations outside of ``capabilities`` and members of earlier versions."""
        super().__init_subclass__(**arguments)
        misplaced = [name for name in DECLARED if name in vars(cls)]
        if misplaced:
            raise InvalidParameter(
                f"{cls.__name__} declares {' and '.join(misplaced)} as an attribute; a learner "
                f"declares capabilities = Capabilities({misplaced[0]}=...)."
            )
        own = vars(cls)
        for name, instead in _REPLACED.items():
            is_ours = own.get("in_files") or (name == "names" and "parts" not in own)
            if name in own and not is_ours:
                raise InvalidParameter(
                    f"{cls.__name__} defines {name}, which learners no longer have; {instead}."
                )

    @property
    def capabilities(self) -> Capabilities:
        """What the learner supports; a class declares ``capabilities = Capabilities(...)``."""
        return Capabilities()

    @property
    def parts(self) -> tuple[Learner, ...]:
        """The learners that each stage chooses from; by default, only the learner itself."""
        return (self,)

    def for_table(self, splits: SplitSettings) -> Self:
        """Return the learner for the columns of a table; by default, the learner itself.

        Parameters
        ----------
        splits : SplitSettings
            The category columns, and what ``capabilities.splits`` returned for the learner,
            adapted to the table.

        Returns
        -------
        Learner
        """
        return self

    @abstractmethod
    def prepare(self, X: Floats, weight: Floats | None, seed: int, n_threads: int) -> Any:
        """Perform the computations on the inputs that all stages share.

        Parameters
        ----------
        X : (n, d) float64
        weight : (n,) float64 or None
        seed : int
        n_threads : int
            Maximum number of threads, here and in the other methods.

        Returns
        -------
        object
            Passed to the other methods as ``data``.

        Raises
        ------
        InvalidData
            If the learner does not support the inputs or weights.
        """

    @abstractmethod
    def fit(
        self, data: Any, gradients: Gradients, sample: RowSample, rng: np.random.Generator
    ) -> list[FittedTerm]:
        """Fit base models for all output columns.

        Parameters
        ----------
        data : object
            Result of :meth:`prepare`.
        gradients : Gradients
            Gradients of all n rows.
        sample : RowSample
            The rows to fit to.
        rng : numpy.random.Generator
            The only source of randomness.

        Returns
        -------
        list of FittedTerm
            Together, the terms cover all output columns.
        """

    def fit_stages(self, data: Any, request: StageRequest) -> FittedStages | None:
        """Fit several stages in one call, and add their outputs to ``raw``.

        The stages have the same bits as if they were fitted one by one.  For each member of an
        ensemble, there are as many of them, at least one.  By default, stages are fitted one by
        one.

        Parameters
        ----------
        data : object
            Result of :meth:`prepare`.
        request : StageRequest
            The stages, and all that they depend on.

        Returns
        -------
        FittedStages or None
            The first of these stages; ``None`` if :meth:`fit` has to fit them.
        """
        return None

    def for_members(
        self, data: Any, n_members: int, choose_penalty: Callable[..., tuple[float, float]] | None
    ) -> Sequence[Any]:
        """Return the ``data`` of each member of an ensemble with the same inputs.

        By default, all members share ``data``.  Learners that store information on earlier stages
        override this method.

        Parameters
        ----------
        data : object
            Result of :meth:`prepare`; remains unchanged.
        n_members : int
        choose_penalty : callable or None
            Chooses the strength of a penalty by the loss, which is also returned, from the data,
            the kernel and the number of basis vectors; by default, ignored.

        Returns
        -------
        sequence of object
        """
        return [data] * n_members

    def stage_added(self, data: Any, stage: Stage | None) -> None:
        """Process a stage after it has been added to the model.

        Learners that penalize the norm of the whole model override this method.  By default, it
        does nothing.

        Parameters
        ----------
        data : object
            Result of :meth:`prepare`.
        stage : Stage or None
            The stage, with the coefficients set by the rules; ``None`` if another learner of the
            model has fitted it, whether or not this one made a proposal.
        """
        return

    def snapshot(self, data: Any) -> Any:
        """Return what later stages need besides the gradients; by default, nothing.

        Learners that declare ``has_state`` override this method and :meth:`restore`.

        Parameters
        ----------
        data : object
            Result of :meth:`prepare`, between two stages.

        Returns
        -------
        object
            Not affected by later stages.  A value that files support, if the learner is
            ``in_checkpoints``.
        """
        return None

    def restore(self, data: Any, snapshot: Any, terms: Sequence[Term]) -> Sequence[Term]:
        """Continue from a snapshot; by default, do nothing.

        Parameters
        ----------
        data : object
            Result of :meth:`prepare` for the same inputs.
        snapshot : object
            Result of :meth:`snapshot`, in this or another process.
        terms : sequence of Term
            All terms that the learner has fitted.

        Returns
        -------
        sequence of Term
            The same terms, which share with later ones the objects that all terms of a fit share.
        """
        return terms

    def converged(self, data: Any) -> bool:
        """Return whether further stages would not change the model.

        Parameters
        ----------
        data : object
            Result of :meth:`prepare`.

        Returns
        -------
        bool
        """
        return False

    def close(self, data: Any) -> None:
        """Release resources acquired by :meth:`prepare`, such as threads.

        Parameters
        ----------
        data : object
            Result of :meth:`prepare`.
        """
        return


def splits_of(learner: Learner) -> list[SplitSettings]:
    """Return the settings of the trees among the learners that each stage chooses from.

    Parameters
    ----------
    learner : Learner

    Returns
    -------
    list of SplitSettings
    """
    declared = [(part, part.capabilities.splits) for part in learner.parts]
    return [splits(part) for part, splits in declared if splits is not None]

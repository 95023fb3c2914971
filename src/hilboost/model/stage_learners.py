"""The learner of each stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hilboost.core.base_model import Stage


@dataclass(frozen=True)
class StageLearners:
    """The learner that fitted each stage of a model with several learners."""

    names: tuple[str, ...]  # names of all learners
    # names of the learners of each stage, one per member of an ensemble
    stages: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, names: tuple[str, ...], stages: Sequence[Stage]) -> StageLearners:
        """Collect the learners from the terms of the stages."""
        # The first term of each member has the first output.
        found = tuple(
            tuple(names[term.learner or 0] for term in stage.terms if term.columns.start == 0)
            for stage in stages
        )
        return cls(names, found)

    @property
    def counts(self) -> dict[str, int]:
        """Number of stages that each learner fitted, in all members."""
        fitted = [name for stage in self.stages for name in stage]
        return {name: fitted.count(name) for name in self.names}

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}: {count}" for name, count in self.counts.items())
        return f"<StageLearners: {len(self.stages)} stages, {parts}>"

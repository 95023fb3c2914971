"""The stages in which each of several learners makes a proposal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self


@dataclass
class Schedule:
    """Schedule that skips learners which are unlikely to win.

    Gains tend to decrease as the model grows.  The last gain of a learner is therefore used as an
    estimate of the next one, as in accelerated greedy selection (Minoux 1978): a learner makes a
    proposal if its last gain exceeds the best gain of this stage.  Because gains can also increase,
    each learner also makes a proposal after an interval of stages, which doubles each time it loses
    and is reset to one when it wins.
    """

    in_files: ClassVar[bool] = True

    stage: int  # number of stages so far
    gains: list[float]  # gain of the last proposal of each learner
    intervals: list[int]
    due: list[int]  # stage in which each learner makes its next proposal at the latest

    @classmethod
    def of(cls, n_learners: int) -> Self:
        """Create the schedule of the first stage, in which all learners make a proposal."""
        return cls(0, [0.0] * n_learners, [1] * n_learners, [0] * n_learners)

    def copied(self) -> Self:
        """Return a copy that later stages do not change."""
        return replace(
            self, gains=list(self.gains), intervals=list(self.intervals), due=list(self.due)
        )

    def winner(self, ask: Callable[[int], float]) -> int:
        """Return the learner with the largest gain; the first one of equal gains.

        ``ask``: computes the gain of a learner's proposal.
        """
        asked: dict[int, float] = {}
        for k, due in enumerate(self.due):
            if due <= self.stage:
                asked[k] = ask(k)
        while True:
            waiting = [k for k in range(len(self.due)) if k not in asked]
            best = max(asked.values(), default=-float("inf"))
            rivals = [k for k in waiting if self.gains[k] > best]
            if not rivals:
                break
            k = max(rivals, key=lambda k: (self.gains[k], -k))
            asked[k] = ask(k)
        winner = max(asked, key=lambda k: (asked[k], -k))
        self._note(asked, winner)
        return winner

    def _note(self, asked: dict[int, float], winner: int) -> None:
        for k, gain in asked.items():
            self.gains[k] = gain
            self.intervals[k] = 1 if k == winner else 2 * self.intervals[k]
            self.due[k] = self.stage + self.intervals[k]
        self.stage += 1

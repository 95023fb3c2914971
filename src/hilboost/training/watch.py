"""The end of the growth of trees beside a kernel machine that is far better."""

from __future__ import annotations

from functools import partial

from hilboost.backends.threads import ThreadTeam
from hilboost.core.callback import Event
from hilboost.training.begin import InitialState
from hilboost.training.mixture import FIRST_LOOK, Attempt
from hilboost.training.recipe import Recipe


class Watch:
    """Callback that ends the growth of trees that hardly gain anything beside a kernel machine.

    The kernel machine is fitted after a hundred stages, and only if it is far better than they
    are.  Later looks follow each time that the number of stages has doubled.

    Parameters
    ----------
    recipe : Recipe
        With a kernel part.
    initial : InitialState
    team : ThreadTeam
    """

    def __init__(self, recipe: Recipe, initial: InitialState, team: ThreadTeam) -> None:
        self._begin = partial(Attempt, recipe, initial, team)
        self._attempt: Attempt | None = None

    def __call__(self, event: Event) -> bool:
        """Return whether to stop after this stage."""
        return self.stops_after(event.stage)

    def stops_after(self, n_stages: int) -> bool:
        """Return whether to stop after a number of stages.

        Parameters
        ----------
        n_stages : int
        """
        n_looks, rest = divmod(n_stages, FIRST_LOOK)
        if rest or n_looks.bit_count() != 1:
            return False
        return self.begun().needs_no_more(n_stages)

    def begun(self) -> Attempt:
        """Return the attempt, which begins with the present stages of the trees."""
        self._attempt = self._attempt or self._begin()
        return self._attempt

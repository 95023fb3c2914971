"""Where and how often a fit is written to a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hilboost.core.callback import Event
from hilboost.core.errors import IncompatibleParts, InvalidParameter

_SECONDS = 60.0


@dataclass(frozen=True)
class Checkpoint:
    """Write the fit to a file as it goes on, and go on from that file.

    A fit with the same data and parameters that finds the file ends in the same model, bit for
    bit, as one that was never interrupted.  With other data or parameters it is refused.  Works
    with the trees of :class:`~hilboost.BoostingRegressor` and
    :class:`~hilboost.BoostingClassifier`, committees included.

    Parameters
    ----------
    path : str or Path
        The file.  It is replaced in one step: a kill or a full disk while writing leaves the old
        one.  It stays when the fit is over; the same fit then takes its model from it.
    every_seconds : float, optional
        Write where so much time has passed since the last time; 60 where ``every_stages`` is not
        given.  Later where writing itself would take more than a twentieth of the time.
    every_stages : int, optional
        Write after so many stages.
    resume : bool, default=True
        ``False`` begins anew and replaces the file.

    Raises
    ------
    InvalidParameter
        The path is no place for a file, or an interval is not positive.

    Notes
    -----
    Cost of writing and size of the file: proportional to the model.  Before the first stage the
    data are hashed, a second or two a gigabyte.  A file that cannot be written is a warning; the
    fit goes on.
    """

    path: str | Path
    every_seconds: float | None = None
    every_stages: int | None = None
    resume: bool = True

    def __post_init__(self) -> None:
        for name in ("every_seconds", "every_stages"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidParameter(f"{name} must be positive; got {value!r}.")
        place = self.file
        if not place.parent.is_dir():
            raise InvalidParameter(
                f"the folder {str(place.parent)!r} for the checkpoint {place.name!r} is not there; "
                "make it first."
            )
        if place.exists() and not place.is_file():
            raise InvalidParameter(f"{str(place)!r} is not a file; give a checkpoint another path.")

    @property
    def file(self) -> Path:
        """The path as a Path."""
        return Path(self.path)

    def is_due(self, stages: int, seconds: float, last_cost: float) -> bool:
        """Whether to write.

        Parameters
        ----------
        stages : int
            Since the last time.
        seconds : float
            Since the last time.
        last_cost : float
            Seconds that writing took then.

        Returns
        -------
        bool
        """
        if self.every_stages is not None and stages >= self.every_stages:
            return True
        interval = self.every_seconds
        if interval is None:
            if self.every_stages is not None:
                return False
            interval = _SECONDS
        return seconds >= max(interval, 20 * last_cost)

    def __call__(self, event: Event) -> None:
        """Refuse: an estimator that can be resumed puts its own writer in this place."""
        raise IncompatibleParts(
            "Checkpoint works with the trees of BoostingRegressor and BoostingClassifier; leave it "
            "out here."
        )

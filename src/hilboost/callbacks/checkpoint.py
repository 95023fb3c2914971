"""Settings for writing a fit to a checkpoint file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hilboost.core.callback import Callback, Event
from hilboost.core.errors import IncompatibleParts, InvalidParameter, InvalidType, shown
from hilboost.core.plain_values import is_number

_SECONDS = 60.0


@dataclass(frozen=True)
class Checkpoint:
    """Save the fit to a file while it runs, and resume from that file.

    A fit that resumes from the file gives the same model, bit for bit, as an uninterrupted fit.
    The data and parameters must be the same; otherwise the fit raises an error.  Works with
    the built-in learners, lists of them, cross-validated ensembles, and all kernels that model
    files support.

    Parameters
    ----------
    path : str or Path
        The checkpoint file.  It is replaced atomically: if the process is killed or the disk is
        full while writing, the previous file remains.  The file is kept after the fit; repeating
        the same fit loads the model from it.
    every_seconds : float, optional
        Minimum number of seconds between two writes; 60 if ``every_stages`` is not given.  The
        interval is extended so that writing takes at most 5 % of the time.
    every_stages : int, optional
        Write after this number of stages.
    resume : bool, default=True
        ``False`` starts a new fit and replaces the file.

    Raises
    ------
    InvalidParameter
        If the path is not valid for a file, or an interval is not positive.

    Notes
    -----
    The writing time and the file size are proportional to the size of the model; for learners other
    than trees, also to the number of training rows times outputs.  The data are
    hashed before the first stage, which takes a second or two per gigabyte.  If the file cannot be
    written, the fit issues a warning and continues.
    """

    path: str | Path
    every_seconds: float | None = None
    every_stages: int | None = None
    resume: bool = True

    def __post_init__(self) -> None:
        for name in ("every_seconds", "every_stages"):
            value = getattr(self, name)
            if value is not None and not (is_number(value) and value > 0):
                raise InvalidParameter(f"{name} must be positive; got {shown(value)}.")
        try:
            place = self.file
        except TypeError:
            raise InvalidType(
                f"path must be the path of a file, as text or a Path; got {shown(self.path)}."
            ) from None
        if not place.parent.is_dir():
            raise InvalidParameter(
                f"the folder {str(place.parent)!r} for the checkpoint {place.name!r} does not "
                "exist; create it first."
            )
        if place.exists() and not place.is_file():
            raise InvalidParameter(
                f"the checkpoint path {str(place)!r} is not a file; choose another path."
            )

    @property
    def file(self) -> Path:
        """The checkpoint file as a Path."""
        return Path(self.path)

    def is_due(self, stages: int, seconds: float, last_cost: float) -> bool:
        """Return whether to write the checkpoint now.

        Parameters
        ----------
        stages : int
            Stages since the last write.
        seconds : float
            Seconds since the last write.
        last_cost : float
            Duration of the last write, in seconds.

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
        """Raise an error; estimators that support checkpoints replace this callback."""
        raise IncompatibleParts(
            "Checkpoint works only with estimators that fit stages one after the other; remove it "
            "from callbacks."
        )


def checkpoint_among(callbacks: Sequence[Callback]) -> Checkpoint | None:
    """Return the checkpoint among the callbacks, if there is one."""
    found = [callback for callback in callbacks if isinstance(callback, Checkpoint)]
    if len(found) > 1:
        raise InvalidParameter(f"Pass at most one Checkpoint; got {len(found)}.")
    return found[0] if found else None

"""Memory that the stages of a fit reuse."""

from __future__ import annotations

import numpy as np

from hilboost.core.dtypes import RAW, Floats


class GradientMemory:
    """Arrays for the gradients of one stage after the other.

    New arrays of large tables would be mapped and cleared by the operating system in every stage.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, Floats] = {}

    def like(self, raw: Floats, name: str) -> Floats:
        """Return an array of the shape and layout of ``raw`` (n, r), with arbitrary content."""
        array = self._arrays.get(name)
        if array is None or array.size < raw.size:
            array = self._arrays[name] = np.empty(raw.size, dtype=RAW)
        array = array[: raw.size]
        if raw.flags.f_contiguous:
            return array.reshape(raw.shape[::-1]).T
        return array.reshape(raw.shape)

    def has(self, name: str) -> bool:
        """Whether there is an array of this name."""
        return name in self._arrays

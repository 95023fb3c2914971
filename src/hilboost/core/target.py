"""Targets: encoded labels with sample weights, and the units in which a fit expresses them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hilboost.core.dependence import Dependence
from hilboost.core.dtypes import Floats
from hilboost.core.exchange import RowShare

if TYPE_CHECKING:
    from hilboost.core.loss import Loss


@dataclass(frozen=True)
class TargetUnits:
    """Internal units of the target: the model is fitted to ``y / size`` instead of ``y``.

    Attributes
    ----------
    plain : Loss
        The loss for targets in original units.
    loss : Loss
        The loss for targets in internal units.
    size : (c,) float64
        One internal unit, for each column of ``y``.
    shift : (r,) float64 or None
        Term added to ``factor * raw`` to convert it from internal to original units: ``log(size)``
        if ``raw`` is a logarithm.  ``None`` means zero.
    factor : float or (r,) float64
        Factor of ``raw`` in this conversion; a power of two for one target and one output.
    value : float
        Factor that converts values of ``loss`` to values of ``plain``.  With several targets, it is
        one: values remain in internal units, in which all targets count alike.
    constant : float
        Term that is then added to these values.
    location : tuple or None
        Loss of the first output alone, and the function of the target that it is fitted to, if this
        output may be fitted first.
    """

    plain: Loss
    loss: Loss
    size: Floats
    shift: Floats | None = None
    factor: Floats | float = 1.0
    value: float = 1.0
    constant: float = 0.0
    location: tuple[Loss, Callable[[Floats], Floats]] | None = None

    def raw_in_own(self, raw: Floats) -> Floats:
        """Convert predictions (n, r) or (r,) of the fit to original units.

        Parameters
        ----------
        raw : (n, r) or (r,) float64

        Returns
        -------
        (n, r) or (r,) float64
        """
        return raw * self.factor + (0.0 if self.shift is None else self.shift)

    def raw_in_fit(self, raw: Floats) -> Floats:
        """Convert predictions (n, r) or (r,) in original units to units of the fit.

        Parameters
        ----------
        raw : (n, r) or (r,) float64

        Returns
        -------
        (n, r) or (r,) float64
        """
        return (raw if self.shift is None else raw - self.shift) / self.factor

    def loss_in_own(self, loss: Floats | float) -> Floats | float:
        """Convert losses of the fit to original units.

        Parameters
        ----------
        loss : float or float64 array

        Returns
        -------
        float or float64 array
        """
        return self.value * loss + self.constant


@dataclass(frozen=True)
class Target:
    """Encoded labels with sample weights.

    Attributes
    ----------
    y : (n, c) float64
        Encoded labels: target values, or class codes (c = 1).  Codes are unsigned integers of as
        few bytes as possible if the loss declares ``takes_integer_codes``.
    weight : (n,) float64 or None
        Sample weights; ``None`` means one for each row.
    positions : (n,) int64 or None
        Position at which each row of a ranking was shown to users, from 0 on; ``None`` if unknown.
    offset : (n, r) float64 or None
        Known part of ``raw``, to which the model is added; ``None`` if it is zero.
    groups : (n,) int64 or None
        Number of the group of each row, ascending: the rows of a group follow each other.  ``None``
        if rows are not grouped.  The rows of a group have the same weight.
    share : RowShare or None
        Which rows of the table these are, if other workers have the others; ``None`` if all rows
        are here.
    dependence : Dependence or None
        By what rows are held out, if not at random.
    """

    y: Floats
    weight: Floats | None = None
    groups: NDArray[np.int64] | None = None
    share: RowShare | None = None
    offset: Floats | None = None
    positions: NDArray[np.int64] | None = None
    dependence: Dependence | None = None

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """First row of each group, and the number of rows, (q + 1,); one group without groups."""
        n = len(self.y)
        if self.groups is None:
            return np.array([0, n])
        first = np.flatnonzero(np.diff(self.groups, prepend=-1))
        return np.append(first, n)

    @cached_property
    def memory(self) -> dict[Any, list[Any]]:
        """Arrays that losses keep between calls with this target; one call takes them from a list.

        Threads that evaluate the same target at the same time then use different ones.
        """
        return {}

    def block(self, rows: slice) -> Target:
        """Return the target of some rows, the same object at each call.

        Parameters
        ----------
        rows : slice
            Whole groups, without a step.

        Returns
        -------
        Target
        """
        if rows.start == 0 and rows.stop == len(self.y):
            return self
        key = rows.start, rows.stop
        if key not in self._blocks:
            self._blocks[key] = self.rows(rows)
        return self._blocks[key]

    def part(self, index: NDArray[Any]) -> Target:
        """Return the target of some rows, the same object at each call with the same array object.

        Parameters
        ----------
        index : index array or mask
            As in :meth:`rows`; must not be written to.

        Returns
        -------
        Target
        """
        found = self._parts.get(id(index))
        if found is None or found[0] is not index:
            found = self._parts[id(index)] = index, self.rows(index)
        return found[1]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is found again: parts, blocks, and the memory of losses."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def _blocks(self) -> dict[tuple[int, int], Target]:
        return {}

    @cached_property
    def _parts(self) -> dict[int, tuple[NDArray[Any], Target]]:
        return {}

    @property
    def n_units(self) -> int:
        """Number of groups, or of rows without groups: what folds and samples consist of."""
        return len(self.y) if self.groups is None else len(self.starts) - 1

    def of_units(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the value of the unit of each row.

        Parameters
        ----------
        values : (n_units,) array
            One value for each group, or for each row without groups.

        Returns
        -------
        (n,) array
        """
        return values if self.groups is None else np.repeat(values, np.diff(self.starts))

    @property
    def is_divided(self) -> bool:
        """Whether other workers have other rows of the table."""
        return self.share is not None

    @property
    def n_rows(self) -> int:
        """Number of rows of the whole table."""
        return len(self.y) if self.share is None else self.share.n_rows

    @property
    def numbers(self) -> NDArray[np.integer]:
        """Numbers of these rows in the whole table, (n,)."""
        return np.arange(len(self.y)) if self.share is None else self.share.numbers

    @property
    def row_weights(self) -> Floats:
        """Weights of these rows, (n,): ones if there are none."""
        return np.ones(len(self.y)) if self.weight is None else self.weight

    def with_offset(self, raw: Floats) -> Floats:
        """Add the offsets to predictions of a model.

        Parameters
        ----------
        raw : (n, r) float64

        Returns
        -------
        (n, r) float64
            ``raw`` itself without offsets.
        """
        return raw if self.offset is None else raw + self.offset

    def starting_raw(self, start: Floats) -> Floats:
        """Return a constant plus the offsets.

        Parameters
        ----------
        start : (r,) float64

        Returns
        -------
        (n, r) float64
            Not to be written to.
        """
        return self.with_offset(np.broadcast_to(start, (len(self.y), len(start))))

    def with_y(self, y: Floats) -> Target:
        """Return a target of the same rows with other labels.

        Parameters
        ----------
        y : (n, c) float64

        Returns
        -------
        Target
        """
        return replace(self, y=y)

    def rows(self, index: Any) -> Target:
        """Return the target of a subset of the rows.

        Parameters
        ----------
        index : slice or index array
            Ascending, and with all rows of a group or none, if rows are grouped.

        Returns
        -------
        Target
        """
        return Target(
            self.y[index],
            None if self.weight is None else self.weight[index],
            None if self.groups is None else self.groups[index],
            self.share and self.share.rows(index),
            None if self.offset is None else self.offset[index],
            None if self.positions is None else self.positions[index],
            self.dependence and self.dependence.rows(index),
        )

    def followed_by(self, other: Target) -> Target:
        """Return the target of the rows of both, all of which are here.

        Parameters
        ----------
        other : Target
            With weights, and with offsets, if and only if this one has them.  Neither has groups.

        Returns
        -------
        Target
        """
        y = np.concatenate([self.y, other.y])
        pairs = (self.weight, other.weight), (self.offset, other.offset)
        weight, offset = (
            None if a is None or b is None else np.concatenate([a, b]) for a, b in pairs
        )
        return Target(y, weight, offset=offset)

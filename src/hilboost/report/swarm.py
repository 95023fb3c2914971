"""Swarms: the values of several columns as points in rows, colored by a shade."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup, escape

from hilboost.report.charts import RIGHT, WIDTH, Axis, tick_text
from hilboost.report.table import number_text, shortened

_LEFT, _TOP, _FOOT = 122, 4, 36
_ROW = 24  # units
_STEP = 3.0  # width of a place
_SPREAD = 9.0  # half height of a full place
_NAME = 16  # characters


def swarm(columns: Sequence[dict[str, Any]], x_label: str, says: str) -> Markup:
    """Draw the values of each column as points in a row.

    ``columns``: ``name``, ``values``, ``shade`` from 0 to 4, or -1, and ``texts`` of the points.
    ``x_label``: label of the axis, and the text for screen readers. ``says``: label of the axis,
    and the text for screen readers.
    """
    height = _TOP + _ROW * len(columns) + _FOOT
    floor = height - _FOOT
    x = Axis.over([0.0, *(v for c in columns for v in c["values"])], _LEFT, WIDTH - RIGHT)
    parts, hover = [], []
    for tick in x.ticks:
        kind = "axis" if tick == 0 else "grid"
        at = x(tick)
        parts.append(f'<line class="{kind}" x1="{at}" x2="{at}" y1="{_TOP}" y2="{floor}"/>')
        parts.append(f'<text x="{at}" y="{floor + 15}" class="tick mid">{tick_text(tick)}</text>')
    for number, column in enumerate(columns):
        middle = _TOP + _ROW * (number + 0.5)
        name = shortened(column["name"], _NAME)
        parts.append(
            f'<text x="{_LEFT - 8}" y="{middle + 3.5}" class="label end">{escape(name)}</text>'
        )
        paths = defaultdict(list)
        heights = _heights([x(value) for value in column["values"]])
        points = zip(column["values"], heights, column["shade"], column["texts"], strict=True)
        for value, up, shade, text in points:
            at, y = x(value), round(middle + up, 1)
            paths[shade].append(f"M{at} {y}h0")
            hover.append(f"{at}\t{y}\t{number_text(value)}\t{escape(text)}\t{escape(name)}")
        parts += [
            f'<path class="swarm s{shade if shade >= 0 else "-none"}" d="{"".join(steps)}"/>'
            for shade, steps in sorted(paths.items())
        ]
    middle = (_LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{height - 4}" class="label mid">{escape(x_label)}</text>')
    return Markup(
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(says)}" '
        f'data-x="{escape(x_label)}" data-y="column" data-hover="'
        + "\n".join(hover)
        + '">'
        + "".join(parts)
        + "</svg>"
    )


def _heights(places: Sequence[float]) -> list[float]:
    """Offsets that keep points in the same place apart, alternately above and below the middle."""
    members = defaultdict(list)
    for k, place in enumerate(places):
        members[int(place // _STEP)].append(k)
    found = [0.0] * len(places)
    for those in members.values():
        step = min(3.0, 2 * _SPREAD / max(1, len(those) - 1))
        for rank, k in enumerate(those):
            found[k] = step * ((rank + 1) // 2) * (1 if rank % 2 else -1)
    return [max(-_SPREAD, min(_SPREAD, height)) for height in found]

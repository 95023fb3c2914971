"""Small charts as inline SVG, whose colors are variables of the page's style sheet.

Every function takes plain numbers and returns markup; text is escaped.  Charts are 360 units wide,
the width of a phone screen, so that their text is readable there.
"""

from __future__ import annotations

import base64
import io
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup, escape
from matplotlib.dates import AutoDateLocator, num2date
from matplotlib.ticker import MaxNLocator

from hilboost.report.table import number_text, shortened, value_text
from hilboost.tables.number_text import day_text

TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("hilboost.report"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)

WIDTH, HEIGHT = 360, 230
LEFT, RIGHT, TOP, BOTTOM = 62, 18, 10, 40  # fits "10 000" next to a label, or half of it


@dataclass(frozen=True)
class Axis:
    """An axis of a chart: maps numbers to positions, and defines the ticks."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    is_log: bool = False
    kind: str = "number"  # or "date": days since 1970

    @classmethod
    def over(
        cls, values: object, start: float, end: float, *, log: bool = False, kind: str = "number"
    ) -> Axis:
        """Make an axis that covers all values, with round ticks."""
        flat = np.asarray([v for v in np.ravel(np.asarray(values, dtype=float)) if np.isfinite(v)])
        low, high = (float(flat.min()), float(flat.max())) if len(flat) else (0.0, 1.0)
        if log and low > 0 and high / low > 20:
            return cls(low, high, start, end, _decades(low, high), True)
        if high <= low:
            margin = 0.5 * (abs(low) or 1.0)
            low, high = low - margin, high + margin
        if kind == "date" and day_text(low) and day_text(high):
            locator = AutoDateLocator(minticks=2, maxticks=4)
            days = locator.tick_values(num2date(low), num2date(high))
            inside = (float(day) for day in days if low <= day <= high and day % 1 == 0)
            return cls(low, high, start, end, tuple(inside), kind=kind)
        ticks = MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
        low, high = min(low, float(ticks[0])), max(high, float(ticks[-1]))
        return cls(low, high, start, end, tuple(float(t) for t in ticks))

    def text(self, tick: float) -> str:
        """Format a tick; dates without the month and day that all of them share with January 1."""
        if self.kind != "date":
            return tick_text(tick)
        days = [value_text(one, "date") for one in self.ticks]
        text = value_text(tick, "date")
        for first in ("-01-01", "-01"):
            if all(day.endswith(first) for day in days):
                return text.removesuffix(first)
        return text

    def __call__(self, value: float) -> float:
        """Return the position of a number."""
        low, high = self.low, self.high
        if self.is_log:
            value, low, high = np.log([max(value, self.low), low, high])
        return round(self.start + (self.end - self.start) * float((value - low) / (high - low)), 1)


def _decades(low: float, high: float) -> tuple[float, ...]:
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    factors = (1,) if len(powers) > 3 else (1, 2, 5)
    ticks = [f * 10.0**p for p in powers for f in factors]
    return tuple(t for t in ticks if low <= t <= high)


def _plane(
    xs: object,
    ys: object,
    *,
    # use a log scale if the values are positive and differ by more than a factor of 20
    log_y: bool = False,
    kind_x: str = "number",  # or "date": days since 1970
    square: bool | float = False,  # let both axes range from 0 to 1, or to this number
    unit_y: bool = False,  # let the vertical axis range from 0 to 1
) -> tuple[Axis, Axis]:
    xs = [0, float(square)] if square else xs
    ys = [0, float(square or 1)] if square or unit_y else ys
    x = Axis.over(xs, LEFT, WIDTH - RIGHT, kind=kind_x)
    return x, Axis.over(ys, HEIGHT - BOTTOM, TOP, log=log_y)


Marks = list[tuple[str, str]]
"""Paths of a chart, each with its classes of the style sheet."""


def _chart(
    x: Axis, y: Axis, x_label: str, y_label: str, says: str, marks: Marks, hover: Sequence[str]
) -> Markup:
    """Draw marks with grid, ticks, and labels; ``hover`` are points whose values are shown."""
    more = {"y": y, "y_label": y_label, "says": says, "marks": marks, "hover": hover}
    return _drawn("chart.html", x, x_label, (LEFT, TOP, HEIGHT - BOTTOM), HEIGHT, more)


def _drawn(
    template: str,
    x: Axis,
    x_label: str,
    corner: tuple[float, float, float],  # left end, top and floor of the plane
    height: float,
    more: dict[str, Any],
) -> Markup:
    """Render the template of a chart."""
    edges = dict(zip(("left", "top", "floor"), corner, strict=True)) | {"right": WIDTH - RIGHT}
    page = TEMPLATES.get_template(template)
    return Markup(page.render(more, x=x, x_label=x_label, edges=edges, size=(WIDTH, height)))


def tick_text(value: float) -> str:
    """Format the number at a tick of an axis."""
    size = abs(value)
    if size >= 1e5:
        exponent = int(np.floor(np.log10(size)))
        for step, letter in ((9, "G"), (6, "M"), (3, "k")):
            if exponent >= step:
                return number_text(value / 10**step) + letter
    return number_text(0.0 if size < 1e-12 else value)


def _hover(
    x: Axis, y: Axis, points: Iterable[tuple[float, float | None]], name: str = ""
) -> list[str]:
    """Points with the values that appear next to the pointer: position, x, y, and a name."""
    tail = f"\t{name}" if name else ""
    return [
        f"{x(a)}\t{y(b)}\t{value_text(a, x.kind)}\t{number_text(b)}{tail}"
        for a, b in points
        if b is not None
    ]


def _path(x: Axis, y: Axis, xs: Sequence[float], ys: Sequence[float | None]) -> str:
    """Draw a line through the points, interrupted at missing values."""
    steps, pen = [], "M"
    for a, b in zip(xs, ys, strict=True):
        if b is None:
            pen = "M"
            continue
        steps.append(f"{pen}{x(a)} {y(b)}")
        pen = "L"
    return "".join(steps)


def _dots(x: Axis, y: Axis, xs: Sequence[float], ys: Sequence[float]) -> str:
    return "".join(f"M{x(a)} {y(b)}h0" for a, b in zip(xs, ys, strict=True))


def _vertical(at: float) -> str:
    return f"M{at} {TOP}V{HEIGHT - BOTTOM}"


def _diagonal(x: Axis, y: Axis) -> tuple[str, str]:
    """Draw the line of equal values."""
    ends = [max(x.low, y.low), min(x.high, y.high)]
    return "ideal", _path(x, y, ends, ends)


def lines(
    # ``x``, ``y``, and optionally ``low``, ``high``, ``name``, and ``color`` (a class of the style
    # sheet)
    series: Sequence[dict[str, Any]],
    x_label: str,
    y_label: str,
    says: str,  # the text for screen readers
    *,
    mark_x: float | None = None,  # position of a vertical line
    diagonal: bool = False,  # draw the line of equal values
    dots: bool = False,  # mark the points
    # positions of small ticks at the bottom, such as the deciles of the data
    ticks_x: Sequence[float] = (),
    **axes: Any,  # ``log_y``, ``kind_x``, ``square``, and ``unit_y`` of the plane
) -> Markup:
    """Draw lines, each with a band if ``low`` and ``high`` are given."""
    xs = [v for s in series for v in s["x"]]
    keys = ("y", "low", "high")
    ys = [v for s in series for key in keys for v in s.get(key, ()) if v is not None]
    x, y = _plane(xs, ys, **axes)
    marks: Marks = [_diagonal(x, y)] if diagonal else []
    hover = []
    for number, s in enumerate(series):
        color = s.get("color", f"c{number + 1}")
        if "low" in s:
            there = [*s["x"], *reversed(s["x"])]
            outline = _path(x, y, there, [*s["high"], *reversed(s["low"])])
            marks.append((f"band {color}", f"{outline}Z"))
        marks.append((f"line {color}", _path(x, y, s["x"], s["y"])))
        hover += _hover(x, y, zip(s["x"], s["y"], strict=True), s.get("name", ""))
        if dots:
            marks.append((f"dots {color}", _dots(x, y, s["x"], s["y"])))
    if mark_x is not None:
        marks.append(("mark", _vertical(x(mark_x))))
    rug = "".join(f"M{x(t)} {HEIGHT - BOTTOM}v-5" for t in ticks_x if x.low <= t <= x.high)
    if rug:
        marks.append(("rug", rug))
    return _chart(x, y, x_label, y_label, says, marks, hover)


def calibration(series: Sequence[dict[str, Any]], says: str) -> Markup:
    """Draw observed frequencies against predicted probabilities, up to the largest of them."""
    most = max((v for s in series for v in (*s["x"], *s["y"])), default=0.0)
    x_label, y_label = "predicted probability", "observed frequency"
    return lines(series, x_label, y_label, says, diagonal=True, dots=True, square=most or True)


def scatter(
    xs: Sequence[float], ys: Sequence[float], x_label: str, y_label: str, says: str
) -> Markup:
    """Draw points and the line of equal values."""
    both = [*xs, *ys]
    x, y = _plane(both, both)
    marks = [("points c1", _dots(x, y, xs, ys)), _diagonal(x, y)]
    hover = _hover(x, y, zip(xs, ys, strict=True))
    return _chart(x, y, x_label, y_label, says, marks, hover)


def histogram(
    edges: Sequence[float],
    counts: Sequence[float],
    x_label: str,
    says: str,
    *,
    mark_x: float | None = None,
    counted: str = "rows",
) -> Markup:
    """Draw a histogram of what is ``counted``, optionally with a vertical line."""
    x, y = _plane(edges, [0, max(1, max(counts))])
    bars = []
    for left, right, count in zip(edges[:-1], edges[1:], counts, strict=True):
        width = max(x(right) - x(left) - 1, 0.5)
        bars.append(f"M{x(left)} {y(0)}V{y(count)}h{width:.1f}V{y(0)}Z")
    marks = [("bar c1", "".join(bars))]
    if mark_x is not None and edges[0] < mark_x < edges[-1]:
        marks.append(("mark", _vertical(x(mark_x))))
    hover = _hover_of_bins(x, y, edges, counts)
    return _chart(x, y, x_label, counted, says, marks, hover)


def _hover_of_bins(
    x: Axis, y: Axis, edges: Sequence[float], heights: Sequence[float], digits: int = 4
) -> list[str]:
    """Return the values of bins that appear next to the pointer."""
    return [
        f"{x((left + right) / 2)}\t{y(height)}\t{value_text(left, x.kind, 3)} … "
        f"{value_text(right, x.kind, 3)}\t{number_text(height, digits)}"
        for left, right, height in zip(edges[:-1], edges[1:], heights, strict=True)
    ]


def outlines(
    edges: Sequence[float],
    series: Sequence[dict[str, Any]],
    x_label: str,
    says: str,
    kind_x: str = "number",
) -> Markup:
    """Draw the outlines of several histograms with the same bins: ``name`` and ``shares`` each."""
    shares = [share for s in series for share in s["shares"]]
    x, y = _plane(edges, [0, *shares], kind_x=kind_x)
    marks, hover = [], []
    for number, s in enumerate(series):
        corners = [edges[0], *np.repeat(edges[1:-1], 2).tolist(), edges[-1]]
        outline = _path(x, y, corners, np.repeat(s["shares"], 2).tolist())
        floor = f"L{x(edges[-1])} {y(0)}L{x(edges[0])} {y(0)}Z"
        marks += [(f"band c{number + 1}", outline + floor), (f"line c{number + 1}", outline)]
        hover += [f"{one}\t{s['name']}" for one in _hover_of_bins(x, y, edges, s["shares"], 3)]
    return _chart(x, y, x_label, "share of the rows", says, marks, hover)


def spark(counts: Sequence[int]) -> Markup:
    """Draw a word-sized histogram, without labels."""
    most, step = max(1, max(counts)), 80 / len(counts)
    bars = "".join(
        f'<rect x="{k * step:.1f}" y="{18 - 18 * count / most:.1f}" width="{step - 0.8:.1f}" '
        f'height="{18 * count / most:.1f}"/>'
        for k, count in enumerate(counts)
    )
    return Markup(f'<svg class="spark" viewBox="0 0 80 18" aria-hidden="true">{bars}</svg>')


def picture(pixels: object, says: str) -> Markup:
    """Embed an image of gray values or colors 0 … 255 as PNG."""
    from matplotlib.image import imsave

    buffer = io.BytesIO()
    array = np.asarray(pixels, dtype=np.uint8)
    imsave(buffer, array, cmap="gray", vmin=0, vmax=255, format="png")  # colors as they are
    data = base64.b64encode(buffer.getvalue()).decode()
    height, width = array.shape[:2]
    return Markup(
        f'<img alt="{escape(says)}" width="{width}" height="{height}" '
        f'style="aspect-ratio:{width}/{height}" src="data:image/png;base64,{data}">'
    )


def heat(values: Sequence[float], shape: Sequence[int], says: str) -> Markup:
    """Draw numbers as a grayscale image, dark to light; negative numbers count as zero."""
    grid = np.maximum(np.asarray(values, dtype=float).reshape(tuple(shape)), 0.0)
    most = float(grid.max())
    return picture(np.round(255 * grid / most if most > 0 else grid).astype(int), says)


_NAMES, _ROW, _FOOT = 122, 24, 36  # units of a swarm
_STEP, _SPREAD = 3.0, 9.0  # width of a place, and half height of a full one
_NAME_LENGTH = 16


def swarm(columns: Sequence[dict[str, Any]], x_label: str, says: str) -> Markup:
    """Draw the values of each column as points in a row, with shades from 0 to 4, or -1."""
    x = Axis.over([0.0, *(v for c in columns for v in c["values"])], _NAMES, WIDTH - RIGHT)
    names, marks, hover = [], [], []
    for number, column in enumerate(columns):
        middle, name = 4 + _ROW * (number + 0.5), shortened(column["name"], _NAME_LENGTH)
        names.append((middle + 3.5, name))
        paths = defaultdict(list)
        heights = _heights([x(value) for value in column["values"]])
        points = zip(column["values"], heights, column["shade"], column["texts"], strict=True)
        for value, up, shade, text in points:
            at, y = x(value), round(middle + up, 1)
            paths[shade].append(f"M{at} {y}h0")
            hover.append(f"{at}\t{y}\t{number_text(value)}\t{text}\t{name}")
        marks += [
            (f"swarm s{shade if shade >= 0 else '-none'}", "".join(steps))
            for shade, steps in sorted(paths.items())
        ]
    floor = 4 + _ROW * len(columns)
    more = {"names": names, "says": says, "marks": marks, "hover": hover}
    return _drawn("swarm.html", x, x_label, (_NAMES, 4, floor), floor + _FOOT, more)


def _heights(places: Sequence[float]) -> list[float]:
    """Offsets that keep points in the same place apart, alternately above and below the middle."""
    members = defaultdict(list)
    for k, place in enumerate(places):
        members[int(place // _STEP)].append(k)
    found = [0.0] * len(places)
    for points in members.values():
        step = min(3.0, 2 * _SPREAD / max(1, len(points) - 1))
        for rank, k in enumerate(points):
            found[k] = step * ((rank + 1) // 2) * (1 if rank % 2 else -1)
    return [max(-_SPREAD, min(_SPREAD, height)) for height in found]

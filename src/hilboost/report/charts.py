"""Small charts as inline SVG, whose colors are variables of the page's style sheet.

Every function takes plain numbers and returns markup; text is escaped.  Charts are 360 units wide,
the width of a phone screen, so that their text is readable there.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from matplotlib.ticker import MaxNLocator

from hilboost.report.table import number_text

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

    @classmethod
    def over(cls, values: object, start: float, end: float, *, log: bool = False) -> Axis:
        """Make an axis that covers all values, with round ticks."""
        flat = np.asarray([v for v in np.ravel(np.asarray(values, dtype=float)) if np.isfinite(v)])
        low, high = (float(flat.min()), float(flat.max())) if len(flat) else (0.0, 1.0)
        if log and low > 0 and high / low > 20:
            return cls(low, high, start, end, _decades(low, high), True)
        if high <= low:
            margin = 0.5 * (abs(low) or 1.0)
            low, high = low - margin, high + margin
        ticks = MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
        low, high = min(low, float(ticks[0])), max(high, float(ticks[-1]))
        return cls(low, high, start, end, tuple(float(t) for t in ticks))

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


def _plane(xs: Any, ys: Any, *, log_y: bool = False) -> tuple[Axis, Axis]:
    x = Axis.over(xs, LEFT, WIDTH - RIGHT)
    return x, Axis.over(ys, HEIGHT - BOTTOM, TOP, log=log_y)


@dataclass(frozen=True)
class Labels:
    """The text of a chart: the labels of its axes, and the text for screen readers."""

    x: str
    y: str
    says: str


def _svg(
    x: Axis, y: Axis, labels: Labels, inside: Sequence[str], hover: Sequence[str] = ()
) -> Markup:
    """Draw a chart with grid, ticks, and labels; ``hover`` are points whose values are shown."""
    values = (
        f' data-x="{escape(labels.x)}" data-y="{escape(labels.y)}" data-hover="'
        + "\n".join(hover)
        + '"'
    )
    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(labels.says)}"{values if hover else ""}>'
    ]
    for tick in y.ticks:
        at = y(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at}" y2="{at}"/>')
        parts.append(
            f'<text x="{LEFT - 6}" y="{at + 3.5}" class="tick end">{tick_text(tick)}</text>'
        )
    for tick in x.ticks:
        at = x(tick)
        parts.append(
            f'<text x="{at}" y="{HEIGHT - BOTTOM + 15}" class="tick mid">{tick_text(tick)}</text>'
        )
    base = HEIGHT - BOTTOM
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{base}" y2="{base}"/>')
    parts += inside
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" class="label mid">{escape(labels.x)}</text>')
    height = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text transform="translate(11 {height}) rotate(-90)" class="label mid">'
        f"{escape(labels.y)}</text>"
    )
    return Markup("".join(parts) + "</svg>")


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
    tail = f"\t{escape(name)}" if name else ""
    return [
        f"{x(a)}\t{y(b)}\t{number_text(a)}\t{number_text(b)}{tail}"
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


def lines(
    # ``x``, ``y``, and optionally ``low``, ``high``, ``name``, and ``color`` (a class of the style
    # sheet)
    series: Sequence[dict[str, Any]],
    x_label: str,  # axis labels, and the text for screen readers
    y_label: str,  # axis labels, and the text for screen readers
    says: str,  # axis labels, and the text for screen readers
    *,
    # use a log scale if the values are positive and differ by more than a factor of 20
    log_y: bool = False,
    mark_x: float | None = None,  # position of a vertical line
    diagonal: bool = False,  # draw the line of equal values
    dots: bool = False,  # mark the points
    # positions of small ticks at the bottom, such as the deciles of the data
    ticks_x: Sequence[float] = (),
    square: bool | float = False,  # let both axes range from 0 to 1, or to this number
    unit_y: bool = False,  # let the vertical axis range from 0 to 1
) -> Markup:
    """Draw lines, each with a band if ``low`` and ``high`` are given."""
    xs = [v for s in series for v in s["x"]]
    keys = ("y", "low", "high")
    ys = [v for s in series for key in keys for v in s.get(key, ()) if v is not None]
    ys = [0, float(square or 1)] if square or unit_y else ys
    x, y = _plane([0, float(square)] if square else xs, ys, log_y=log_y)
    drawn, hover = [], []
    if diagonal:
        low, high = max(x.low, y.low), min(x.high, y.high)
        drawn.append(f'<path class="ideal" d="{_path(x, y, [low, high], [low, high])}"/>')
    for number, s in enumerate(series):
        color = s.get("color", f"c{number + 1}")
        if "low" in s:
            there = [*s["x"], *reversed(s["x"])]
            outline = _path(x, y, there, [*s["high"], *reversed(s["low"])])
            drawn.append(f'<path class="band {color}" d="{outline}Z"/>')
        drawn.append(f'<path class="line {color}" d="{_path(x, y, s["x"], s["y"])}"/>')
        hover += _hover(x, y, zip(s["x"], s["y"], strict=True), s.get("name", ""))
        if dots:
            points = "".join(f"M{x(a)} {y(b)}h0" for a, b in zip(s["x"], s["y"], strict=True))
            drawn.append(f'<path class="dots {color}" d="{points}"/>')
    if mark_x is not None:
        drawn.append(
            f'<line class="mark" x1="{x(mark_x)}" x2="{x(mark_x)}" y1="{TOP}" '
            f'y2="{HEIGHT - BOTTOM}"/>'
        )
    foot = "".join(f"M{x(t)} {HEIGHT - BOTTOM}v-5" for t in ticks_x if x.low <= t <= x.high)
    if foot:
        drawn.append(f'<path class="rug" d="{foot}"/>')
    return _svg(x, y, Labels(x_label, y_label, says), drawn, hover)


def calibration(series: Sequence[dict[str, Any]], says: str) -> Markup:
    """Draw observed frequencies against predicted probabilities, up to the largest of them.

    ``series``: see :func:`lines`. ``says``: the text for screen readers.
    """
    most = max((v for s in series for v in (*s["x"], *s["y"])), default=0.0)
    x_label, y_label = "predicted probability", "observed frequency"
    return lines(series, x_label, y_label, says, diagonal=True, dots=True, square=most or True)


def scatter(
    xs: Sequence[float], ys: Sequence[float], x_label: str, y_label: str, says: str
) -> Markup:
    """Draw points and the line of equal values."""
    both = [*xs, *ys]
    x, y = _plane(both, both)
    low, high = max(x.low, y.low), min(x.high, y.high)
    points = "".join(f"M{x(a)} {y(b)}h0" for a, b in zip(xs, ys, strict=True))
    drawn = [
        f'<path class="points c1" d="{points}"/>',
        f'<path class="ideal" d="{_path(x, y, [low, high], [low, high])}"/>',
    ]
    hover = _hover(x, y, zip(xs, ys, strict=True))
    return _svg(x, y, Labels(x_label, y_label, says), drawn, hover)


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
    drawn, hover = [], []
    for left, right, count in zip(edges[:-1], edges[1:], counts, strict=True):
        width = max(x(right) - x(left) - 1, 0.5)
        top, floor = y(count), y(0)
        drawn.append(
            f'<rect class="bar c1" x="{x(left)}" y="{top}" width="{width:.1f}" '
            f'height="{floor - top:.1f}"/>'
        )
        range_ = f"{number_text(left, 3)} … {number_text(right, 3)}"
        hover.append(f"{x((left + right) / 2)}\t{top}\t{range_}\t{number_text(count)}")
    if mark_x is not None and edges[0] < mark_x < edges[-1]:
        at = x(mark_x)
        drawn.append(f'<line class="mark" x1="{at}" x2="{at}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
    return _svg(x, y, Labels(x_label, counted, says), drawn, hover)


def outlines(
    edges: Sequence[float], series: Sequence[dict[str, Any]], x_label: str, says: str
) -> Markup:
    """Draw the outlines of several histograms with the same bins.

    ``series``: ``name``, and ``shares``, the b shares of the rows. ``x_label``: label of the
    horizontal axis, and the text for screen readers. ``says``: label of the horizontal axis, and
    the text for screen readers.
    """
    x, y = _plane(edges, [0, *(share for s in series for share in s["shares"])])
    drawn, hover = [], []
    for number, s in enumerate(series):
        corners = [edges[0], *np.repeat(edges[1:-1], 2).tolist(), edges[-1]]
        heights = np.repeat(s["shares"], 2).tolist()
        floor = _path(x, y, [edges[-1], edges[0]], [0.0, 0.0]).replace("M", "L", 1)
        outline = _path(x, y, corners, heights)
        drawn.append(f'<path class="band c{number + 1}" d="{outline}{floor}Z"/>')
        drawn.append(f'<path class="line c{number + 1}" d="{outline}"/>')
        for left, right, share in zip(edges[:-1], edges[1:], s["shares"], strict=True):
            range_ = f"{number_text(left, 3)} … {number_text(right, 3)}"
            hover.append(
                f"{x((left + right) / 2)}\t{y(share)}\t{range_}\t{number_text(share, 3)}"
                f"\t{escape(s['name'])}"
            )
    return _svg(x, y, Labels(x_label, "share of the rows", says), drawn, hover)


def spark(counts: Sequence[int]) -> Markup:
    """Draw a word-sized histogram, without labels."""
    most, step = max(1, max(counts)), 80 / len(counts)
    bars = "".join(
        f'<rect x="{k * step:.1f}" y="{18 - 18 * count / most:.1f}" width="{step - 0.8:.1f}" '
        f'height="{18 * count / most:.1f}"/>'
        for k, count in enumerate(counts)
    )
    return Markup(f'<svg class="spark" viewBox="0 0 80 18" aria-hidden="true">{bars}</svg>')


def pair_of_curves(true: Sequence[float], predicted: Sequence[float], says: str) -> Markup:
    """Draw a true and a predicted curve over the entry index."""
    places = list(range(len(true)))
    series = [
        {"x": places, "y": list(true), "color": "c1", "name": "true"},
        {"x": places, "y": list(predicted), "color": "c2", "name": "predicted"},
    ]
    return lines(series, "entry", "value", says, dots=len(true) <= 12)


def picture(pixels: Any, says: str) -> Markup:
    """Embed an image of gray values or colors 0 … 255 as PNG."""
    from matplotlib.image import imsave

    buffer = io.BytesIO()
    array = np.asarray(pixels, dtype=np.uint8)
    if array.ndim == 2:
        imsave(buffer, array, cmap="gray", vmin=0, vmax=255, format="png")
    else:
        imsave(buffer, array, format="png")
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

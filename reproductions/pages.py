"""The pages of ``hilboost reproduce``: Markdown, a figure, and a table of all claims."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["write_figure", "write_page", "write_summary"]

Facts = dict[str, Any]
_BEGIN, _END = "<!-- table -->", "<!-- end of table -->"
_PUBLISHED, _MEASURED = "#e07b00", "#00796b"


def _number(value: float | None, deviation: float | None = None) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" + ("" if deviation is None else f" ± {deviation:.2g}")


def write_page(facts: Facts, path: Path) -> None:
    """Write the page of one claim."""
    rows = [
        f"| {value['name']} | {_number(value['published'], value['published_deviation'])} "
        f"| {_number(value['measured'], value['measured_deviation'])} | {value['runs'] or '–'} "
        f"| {value['verdict']} |"
        for value in facts["values"]
    ]
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    origin = (
        "taken from the benchmark results in `benchmarks/results`"
        if facts["recorded"]
        else f"{facts['seconds']:g} s in total"
    )
    lines = [
        f"# {facts['source']}, {facts['where']}: {facts['title']}",
        "",
        f"{facts['measure']} {facts['protocol']}",
        "",
        "| | published | measured | runs | |",
        "|---|---:|---:|---:|---|",
        *rows,
        "",
        f"![Published and measured figures]({facts['key']}.svg)",
        "",
        *(f"* {text}" for text in facts["notes"]),
        *([""] if facts["notes"] else []),
        *(line for table in facts.get("tables", ()) for line in _table(table)),
        f"{facts['date']}; {facts['machine']}; {versions}; {origin}. Published number of runs: "
        f"{facts['published_runs']}. To repeat: `hilboost reproduce {facts['key']}`.",
        "",
    ]
    path.write_text("\n".join(lines), encoding="utf-8")


def _table(table: dict[str, Any]) -> list[str]:
    """Lines of a table of text cells below the notes, with its title and introduction."""
    rule = "|" + "---|" + "---:|" * (len(table["header"]) - 1)
    rows = ["| " + " | ".join(cells) + " |" for cells in (table["header"], *table["rows"])]
    return [f"## {table['title']}", "", table["text"], "", rows[0], rule, *rows[1:], ""]


def write_figure(facts: Facts, path: Path) -> None:
    """Draw published values on the left and measured values on the right."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    values, curves = facts["values"], facts["curves"]
    height = max(2.2, 0.3 * len(values) + 1.2) if not curves else max(3.4, 0.3 * len(values) + 1.2)
    figure = Figure(figsize=(10 if curves else 8, height), layout="constrained")
    panels = figure.subplots(1, 3 if curves else 2, width_ratios=(1, 1, 1.5) if curves else None)
    known = [value[which] for value in values for which in ("published", "measured")]
    known = [number for number in known if number is not None]
    logarithmic = min(known) > 0 and max(known) > 20 * min(known)
    for axes, which, color in zip(
        panels[:2], ("published", "measured"), (_PUBLISHED, _MEASURED), strict=True
    ):
        for y, value in enumerate(values):
            if value[which] is None:
                axes.text(
                    0.02, y, "not measured", transform=axes.get_yaxis_transform(), va="center"
                )
            else:
                axes.errorbar(
                    value[which], y, xerr=value[f"{which}_deviation"], fmt="o", color=color
                )
        axes.set(title=which, ylim=(len(values) - 0.5, -0.5))
        axes.set_yticks(range(len(values)), [v["name"] for v in values])
        if logarithmic:
            axes.set_xscale("log")
        axes.set_xlim(*_limits(known, logarithmic))
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="x", color="0.9")
    panels[1].tick_params(labelleft=False)
    if curves:
        _draw_curves(panels[2], facts)
    figure.set_canvas(FigureCanvasSVG(figure))
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": facts["key"]}):
        figure.savefig(path, metadata={"Date": None})


def _limits(known: list[float], logarithmic: bool) -> tuple[float, float]:
    low, high = min(known), max(known)
    if logarithmic:
        return low / 1.6, high * 1.6
    pad = 0.08 * ((high - low) or abs(high) or 1.0)
    return low - pad, high + pad


def _draw_curves(axes: Any, facts: Facts) -> None:
    for name, points in facts["curves"].items():
        x, y = zip(*points, strict=True)
        axes.plot(x, y, marker="." if len(x) < 20 else None, label=name)
    axes.set(title="measured", xlabel=facts["axes"][0], ylabel=facts["axes"][1])
    axes.legend(frameon=False, fontsize="small")
    axes.spines[["top", "right"]].set_visible(False)


def write_summary(folder: Path) -> None:
    """Update the table of claims in ``README.md`` of the folder."""
    page = folder / "README.md"
    rows = [
        "| claim | reproduced | better | differs | not measured | measured on |",
        "|---|" + "---:|" * 5,
    ]
    for path in sorted(folder.glob("*/results/*.json")):
        facts = json.loads(path.read_text(encoding="utf-8"))
        kinds = [value["verdict"].split(":")[0].split(" than")[0] for value in facts["values"]]
        counts = [kinds.count(kind) for kind in ("reproduced", "better", "differs", "not measured")]
        place = path.with_suffix(".md").relative_to(folder).as_posix()
        rows.append(
            f"| [{facts['source']}, {facts['where']}]({place}): {facts['title']} | "
            + " | ".join(str(count or "") for count in counts)
            + f" | {facts['date'][:10]} |"
        )
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    after = rest.partition(_END)[2]
    page.write_text(
        before + _BEGIN + "\n\n" + "\n".join(rows) + "\n\n" + _END + after, encoding="utf-8"
    )

"""Charts: what is written stays inside and apart."""

import re

import numpy as np
import pytest

from hilboost.report import charts


@pytest.mark.parametrize("most", [20_000, 99_999, -40_000, 0.004])
def test_labels_of_ticks_are_inside_and_beside_that_of_the_axis(most):
    drawn = str(charts.scatter([0.0, most], [0.0, most], "predicted", "true", "says"))
    found = re.findall(
        r'<text x="([\d.]+)" y="[\d.]+" class="tick (end|mid)">([^<]+)</text>', drawn
    )
    assert len(found) > 6
    for place, anchor, text in found:
        thin = text.count("\u202f")
        width = 6.4 * (len(text) - thin) + 2 * thin  # letters 11 units high, as in the style sheet
        left = float(place) - (width if anchor == "end" else width / 2)
        assert left >= (15 if anchor == "end" else 0)
        assert left + width <= charts.WIDTH + 1


def test_calibration_of_a_rare_class_fills_the_chart():
    chart = charts.calibration([{"x": [0.01, 0.03], "y": [0.0, 0.04]}], "rare")
    assert ">0.04</text>" in chart
    assert ">1</text>" not in chart
    assert ">1</text>" in charts.calibration([{"x": [0.0], "y": [0.0]}], "never")


@pytest.mark.parametrize(
    ("first", "last", "ticks"),
    [
        ("2020-01-01", "2024-01-01", {"2020", "2022", "2024"}),
        ("2023-01-20", "2023-06-10", {"2023-03", "2023-05"}),
        ("2023-01-03", "2023-01-04", {"2023-01-03", "2023-01-04"}),
    ],
)
def test_ticks_of_dates_are_as_short_as_they_can_be(first, last, ticks):
    days = [float(np.datetime64(day, "D").astype(int)) for day in (first, last)]
    chart = str(charts.lines([{"x": days, "y": [0.0, 5.0]}], "sold", "", "", kind_x="date"))
    assert ticks <= set(re.findall(r'class="tick mid">([^<]+)<', chart))
    assert f"\t{last}\t" in chart


def test_days_that_cannot_be_dates_stay_numbers():
    assert "5M" in str(charts.lines([{"x": [0, 5e6], "y": [0, 1]}], "", "", "", kind_x="date"))

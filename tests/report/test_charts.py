"""Charts: what is written stays inside and apart."""

import re

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

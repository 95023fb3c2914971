"""Limits that only large tables reach."""

import pytest

from hilboost.engine import buffers, separate
from hilboost.engine import gradients as packing


@pytest.fixture
def little_memory(monkeypatch):
    """Trees have histograms of two leaves only."""
    monkeypatch.setattr(buffers, "HISTOGRAM_BUDGET", 0)


@pytest.fixture
def count_channel(monkeypatch):
    """The mean gradient of few rows needs many steps: rows count in a channel of their own."""
    monkeypatch.setattr(packing, "_FEWEST_STEPS", 2**40)
    for module in (separate, packing):  # which keep no other layout
        monkeypatch.setattr(module, "layout_of", packing.layout_of.__wrapped__)

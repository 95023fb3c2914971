"""Garbage collection stays as the user has set it."""

import gc

import pytest

from hilboost.core.discovery import without_collections


@pytest.mark.parametrize("enabled", [True, False])
def test_collections_are_as_before_even_after_an_error(enabled):
    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(ZeroDivisionError), without_collections():
            1 / gc.isenabled()
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_new_objects_become_old_ones():
    collections = gc.get_stats()[1]["collections"]
    with without_collections():
        kept = [[] for _ in range(100_000)]
        assert gc.get_stats()[1]["collections"] == collections
    assert gc.get_stats()[1]["collections"] == collections + 1
    assert gc.get_count()[0] < len(kept)

"""Memory that is kept between stages, and returned after the last session."""

import pytest

pytest.importorskip("distributed")

from hilboost.dask import session


class Library:
    def __init__(self):
        self.calls = []

    def mallopt(self, parameter, value):
        self.calls.append((parameter, value))

    def malloc_trim(self, kept):
        self.calls.append("trimmed")


@pytest.fixture
def library(monkeypatch):
    """What the C library is asked for."""
    library = Library()
    monkeypatch.setattr(session.ctypes, "CDLL", lambda _: library)
    monkeypatch.setattr(session, "_n_users", 0)  # workers in this process may still be users
    return library


def test_the_last_session_restores_the_settings(library, monkeypatch):
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    with session.kept_memory():
        during = library.calls.copy()
        with session.kept_memory():
            pass
        assert library.calls == during == [(-1, 2**29), (-3, 2**25)]
    assert library.calls[2:] == [(-1, 65536), (-3, 2**17), "trimmed"]


def test_other_settings_are_left_alone(library, monkeypatch):
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    with session.kept_memory():
        assert not library.calls

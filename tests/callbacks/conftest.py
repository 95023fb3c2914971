"""Interrupts reach the tests however these were started."""

import signal

import pytest


@pytest.fixture(autouse=True)
def usual_interrupts():
    """A shell starts programs in the background with SIGINT ignored, which they inherit."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)

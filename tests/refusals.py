"""Calls that are refused in a sentence."""

import pytest


def refused(error, sentence, call, *given, **named):
    """The call raises this error, and the sentence (a pattern) is in its message."""
    with pytest.raises(error, match=sentence):
        call(*given, **named)

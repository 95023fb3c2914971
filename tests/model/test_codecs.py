"""Codecs return themselves for their own kind of targets, and an error for the others."""

import numpy as np
import pytest

from hilboost.core.errors import InvalidData
from hilboost.model.codecs import ClassCodec, NumberCodec
from hilboost.model.survival import SurvivalCodec

CODECS = {
    "numbers": NumberCodec(n_targets=1, flat=True),
    "classes": ClassCodec(np.arange(2)),
    "survival": SurvivalCodec(),
}


@pytest.mark.parametrize("kind", CODECS)
@pytest.mark.parametrize("asked", [*CODECS, "structures"])
def test_a_codec_is_of_one_kind(kind, asked):
    codec = CODECS[kind]
    if kind == asked:
        assert getattr(codec, f"of_{asked}")() is codec
        return
    with pytest.raises(InvalidData, match="the model has no"):
        getattr(codec, f"of_{asked}")()

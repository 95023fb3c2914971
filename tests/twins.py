"""Compiled functions beside their naive twins."""

import numpy as np


def compared(compiled, naive, **tolerances):
    """Run the body of a loop with each module; what it keeps must be equal, bit for bit."""
    results = []
    for module in (compiled, naive):
        yield module, lambda *kept: results.append(kept)
    check = np.testing.assert_allclose if tolerances else np.testing.assert_array_equal
    found, expected = results
    for one, other in zip(found, expected, strict=True):
        check(one, other, **tolerances)

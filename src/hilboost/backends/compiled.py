"""The one way in which loops are compiled here.

Cached on disk, without the interpreter lock, and with NumPy's rules for division: a zero divisor
gives ``inf`` or ``nan`` and no exception, which a team of threads at a barrier could not survive.
"""

from numba import njit

compiled = njit(cache=True, nogil=True, error_model="numpy")

reordered = njit(
    cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"}
)
"""For short sums whose order the compiler may choose, so that they become vector code."""

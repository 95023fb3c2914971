"""Sums that do not depend on the order of their terms."""

from fractions import Fraction
from random import Random

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hilboost.kernels import gram
from hilboost.kernels.gram import OrderFreeSum


def total(terms, bound):
    found = OrderFreeSum((2,), np.empty(0), bound, 100)
    for term in terms:
        found.add(np.array(term))
    return found.total(None)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(*[st.floats(-1e3, 1e3)] * 2), min_size=1, max_size=20),
    st.randoms(use_true_random=False),
    st.sampled_from([1e-200, 1.0, 1e150]),
)
@example([(0.0, 1e-81)], Random(0), 1e-200)  # finer than the smallest grid
def test_any_order_gives_the_sum(terms, random, scale):
    terms = [[scale * x for x in term] for term in terms]
    bound = max(sum(abs(term[k]) for term in terms) for k in range(2))
    found = total(terms, bound)
    shuffled = terms.copy()
    random.shuffle(shuffled)
    np.testing.assert_array_equal(total(shuffled, bound), found)
    for k in range(2):
        exact = sum(Fraction(term[k]) for term in terms)
        error = abs(Fraction(float(found[k])) - exact)
        grid = Fraction(max(bound, 2.0**gram._SMALLEST_EXPONENT)) * Fraction(2) ** -80
        assert error <= abs(exact) * Fraction(2) ** -52 + grid

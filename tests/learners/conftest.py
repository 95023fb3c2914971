"""Learners see one thread of BLAS, as in a fit."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def as_in_a_fit(one_blas_thread):
    pass

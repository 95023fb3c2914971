"""Settings of all tests."""

import os

from hypothesis import HealthCheck, settings

# The same examples in every run; compiled code is slow the first time it is called.
settings.register_profile(
    "hilboost",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=int(os.environ.get("HILBOOST_EXAMPLES", "15")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("hilboost")

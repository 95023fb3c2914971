"""Training on tables that do not fit into memory (requires ``hilboost[stream]``)."""

from hilboost.core.packages import required

required("pyarrow", "hilboost.stream")

from hilboost.stream.fit import fit  # noqa: E402

__all__ = ["fit"]

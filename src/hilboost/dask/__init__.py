"""Training and prediction on Dask clusters (requires ``hilboost[dask]``)."""

from hilboost.core.packages import required

required("distributed", "hilboost.dask")

from hilboost.dask.fit import fit  # noqa: E402
from hilboost.dask.partitions import predict, predict_proba  # noqa: E402

__all__ = ["fit", "predict", "predict_proba"]

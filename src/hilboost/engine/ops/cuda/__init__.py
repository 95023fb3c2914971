"""Operations of growth on a GPU."""

from __future__ import annotations

from hilboost.engine.ops.cuda.operations import DeviceOperations

__all__ = ["DeviceOperations", "operations_on"]


def operations_on(device: str) -> DeviceOperations:
    """Return the operations of a GPU, such as ``"cuda"`` or ``"cuda:1"``.

    Raises
    ------
    InvalidParameter
        The GPU is not found.
    MissingPackage
    """
    from hilboost.engine.ops.cuda.gpu import Gpu

    return DeviceOperations(Gpu.of(device))

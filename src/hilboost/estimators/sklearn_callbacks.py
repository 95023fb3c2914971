"""Support for scikit-learn callbacks, available in scikit-learn 1.9 and later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hilboost.core.callback import Event
from hilboost.model.fitted import FittedModel

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Do nothing, because this version of scikit-learn has no callbacks."""

    def with_callbacks(method: object) -> Any:
        """Do nothing, because this version of scikit-learn has no callbacks."""
        return method


__all__ = ["CallbackSupportMixin", "Relay", "with_callbacks"]


class Relay:
    """Notifies the callbacks of ``set_callbacks`` of the fit and of each stage.

    Both hooks of a stage run when the stage is complete.

    ``**data``: Arguments of the fit as passed by the caller.
    """

    def __init__(self, estimator: Any, **data: Any) -> None:
        self._data = {"estimator": estimator, **data}
        self._fit = estimator._init_callback_context(max_subtasks=None)
        self._fit.call_on_fit_task_begin(**self._data)
        self._fitted_so_far: Callable[[], FittedModel] | None = None

    def watch(self, fitted_so_far: Callable[[], FittedModel]) -> None:
        """Set the function that builds a model of the completed stages for callbacks."""
        self._fitted_so_far = fitted_so_far

    def __call__(self, event: Event) -> bool:
        """Report a stage to the callbacks; ``True`` if one of them requests a stop."""
        stage = self._fit.subcontext(task_name="stage")
        stage.call_on_fit_task_begin(**self._data)
        given = {**self._data, "reconstruction_attributes": self._so_far}
        return bool(stage.call_on_fit_task_end(**given))

    def _so_far(self) -> dict[str, Any] | None:
        """Attributes with which a copy of the estimator predicts from the completed stages."""
        if self._fitted_so_far is None:
            return None
        return {"fitted_": self._fitted_so_far()}

    def end(self) -> None:
        """Report the end of the fit, when the estimator has its fitted attributes."""
        self._fit.call_on_fit_task_end(**self._data, reconstruction_attributes=dict)

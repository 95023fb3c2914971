"""The boosting loop: functional gradient descent in stages."""

from hilboost.boosting.history import metric_value

__all__ = ["metric_value"]

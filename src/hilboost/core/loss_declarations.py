"""Properties that a loss declares."""

from __future__ import annotations

from typing import Any, ClassVar

_OF_THE_FORMULA = (
    "evaluates_both",
    "checked_by_value",
    "takes_integer_codes",
    "joins_kernel_machine",
    "quadratic",
    "bounded_hessian",
    "additive_over_targets",
    "gaussian",
    "symmetric",
    "of_distance",
    "divides_rows",
)
_NAMES = ("compiled_name", "regressor_name", "classifier_name", "ranker_name", "survival_name")


class LossDeclarations:
    """Properties that a loss declares in class attributes.

    Learners, rules, model files and exports depend on them, not on the class of a loss.  Subclasses
    inherit neither names nor ``evaluates_both``, ``checked_by_value``, ``takes_integer_codes``,
    ``joins_kernel_machine``, ``quadratic``, ``bounded_hessian``, ``additive_over_targets``,
    ``gaussian``, ``symmetric``, ``of_distance`` and ``divides_rows``: they may change the formula.
    """

    evaluates_both: ClassVar[bool] = False
    """Whether :meth:`value_and_gradients` takes less time than two calls."""

    checked_by_value: ClassVar[bool] = False
    """Whether gradients are finite and hessians not negative in rows whose value is finite.

    Of the results of :meth:`value_and_gradients`, only the values are checked then.
    """

    takes_integer_codes: ClassVar[bool] = False
    """Whether class codes in ``target.y`` may be unsigned integers, instead of float64."""

    joins_kernel_machine: ClassVar[bool] = False
    """Whether ``learner="auto"`` may add a kernel machine that is fitted by least squares."""

    quadratic: ClassVar[bool] = False
    """Whether the loss is half a sum of squares, so that Newton steps are exact."""

    bounded_hessian: ClassVar[bool] = False
    """Whether ``Structure.bound`` always bounds the hessian, so that full steps never ascend."""

    additive_over_targets: ClassVar[bool] = False
    """Whether the loss is a sum over target columns, so that some targets may be missing."""

    gaussian: ClassVar[bool] = False
    """Whether the loss assumes Gaussian noise, so that kernel machines have standard deviations."""

    adaptive: ClassVar[bool] = False
    """Whether :meth:`adapted` estimates a parameter before each stage."""

    has_leaf_values: ClassVar[bool] = False
    """Whether :meth:`leaf_values` computes the best constant to add to ``raw`` in a leaf."""

    couples_rows: ClassVar[bool] = False
    """Whether the loss of a row depends on the other rows of its group, or on all rows."""

    counts_positions: ClassVar[bool] = False
    """Whether ``value`` changes only where rows change their order: it is noisy, then."""

    corrects_positions: ClassVar[bool] = False
    """Whether the effects of ``target.positions`` are estimated before each stage."""

    sharpness: float | None = None
    """Factor of the scores in the probabilities; ``None`` if :meth:`sharpened` fits none."""

    has_distribution: ClassVar[bool] = False
    """Whether :meth:`distribution_of` predicts distributions, whose scale needs rows held out."""

    symmetric: ClassVar[bool] = False
    """Whether the loss of one target depends on ``|y - raw|`` alone and rises with it."""

    of_distance: ClassVar[bool] = False
    """Whether only the length of ``y - raw`` counts, so that one step length serves all outputs."""

    divides_rows: bool = False
    """Whether the rows may be divided among workers.

    The loss must then take all sums and quantiles over rows from :mod:`hilboost.reductions`.
    """

    hessian_counts_targets: bool = False
    """Whether the hessian is one for known targets and zero for missing ones."""

    degree: ClassVar[float | None] = None
    """Degree of homogeneity: ``value(c y, c raw) = c ** degree * value(y, raw)`` for ``c > 0``.

    ``None`` if unknown.  Subclasses do not inherit the degree, nor the units derived from it.
    """

    compiled_name: ClassVar[str | None] = None
    """Name of a loss that learners can evaluate in compiled code, for several stages in a row."""

    regressor_name: ClassVar[str | None] = None
    """Name of a built-in loss in regressors."""

    classifier_name: ClassVar[str | None] = None
    """Name of a built-in loss in classifiers."""

    ranker_name: ClassVar[str | None] = None
    """Name of a built-in loss in rankers."""

    survival_name: ClassVar[str | None] = None
    """Name of a built-in loss in survival models."""

    n_classes_range: ClassVar[tuple[int, int | None]] = (1, None)
    """Minimum and maximum number of classes of a classification loss."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Reset what subclasses do not inherit, because they may change the formula."""
        super().__init_subclass__(**arguments)
        for names, value in ((_OF_THE_FORMULA, False), (_NAMES, None)):
            for name in names:
                if name not in vars(cls):
                    setattr(cls, name, value)

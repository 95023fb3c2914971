"""Signatures of public methods: types, unknown arguments, and estimators without offsets."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from contextvars import ContextVar
from copy import copy
from dataclasses import KW_ONLY, field, make_dataclass
from functools import update_wrapper, wraps
from inspect import cleandoc, get_annotations, getattr_static, isfunction, signature, unwrap
from typing import Annotated, Any, ClassVar, Self, TypeVar, cast, dataclass_transform, get_origin

from sklearn.base import BaseEstimator
from sklearn.utils import metaestimators
from sklearn.utils._param_validation import InvalidParameterError

from hilboost.core.errors import InvalidParameter, InvalidType, shown
from hilboost.core.plain_values import is_integer, is_name
from hilboost.estimators import sklearn_callbacks
from hilboost.estimators.peer_names import advice, peers, same_parameters
from hilboost.validation.order import check_order

Method = TypeVar("Method", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)


_LONGEST_VALUE = 120  # of a parameter in a message
_FEW_PARAMETERS = 10
_BEYOND = 2**63


# Whether one public method calls another, which would repeat the warnings.
_ORDER_IS_CHECKED: ContextVar[bool] = ContextVar("order_is_checked", default=False)


def available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
    """Hide a method of objects that do not pass a check, like scikit-learn's decorator."""
    return cast("Callable[[Method], Method]", metaestimators.available_if(check))


def public_fit(method: Method) -> Method:
    """Run scikit-learn's callbacks around ``fit``, and explain unknown arguments."""
    known = tuple(signature(method).parameters)
    method.__qualname__ = method.__name__  # for the interpreter's own messages
    run = sklearn_callbacks.with_callbacks(method)

    @wraps(method)
    def fit(self: Any, *arguments: Any, **named: Any) -> Any:
        refuse_unknown(type(self), named, known, "fit")
        try:
            return run(self, *arguments, **named)
        except (InvalidParameter, InvalidParameterError):
            _refuse_names_of_others(self)
            raise

    return cast("Method", fit)


def _refuse_names_of_others(model: Any) -> None:
    """Name the parameter that has what another one cannot have, such as a learner passed first."""
    names = _names_of_values(model)
    for parameter, known in names.items():
        value = getattr(model, parameter)
        right = [
            f"{other}={value!r}"
            for other, values in names.items()
            if any(is_name(value, one) and one not in {"auto", *known} for one in values)
        ]
        if right:
            raise InvalidParameter(
                f"{parameter}={value!r} is not known; did you mean {' or '.join(right)}?"
            ) from None


def _names_of_values(model: Any) -> dict[str, set[str]]:
    """Names that are listed as values of the parameters of an estimator."""
    from hilboost.kernels import KERNEL_NAMES
    from hilboost.losses import registry
    from hilboost.outputs.registry import OUTPUT_NAMES

    listed = {
        "class_weight": {"balanced"},
        "learner": model._learner_names,
        "kernel": KERNEL_NAMES,
        "output": {*OUTPUT_NAMES, *KERNEL_NAMES},
        "loss": {
            *registry.regression_losses(),
            *registry.classification_losses(),
            *registry.ranking_losses(),
            *registry.survival_losses(),
        },
    }
    constraints = model._parameter_constraints
    return {
        name: {
            *listed.get(name, ()),
            *(one for given in constraints.get(name, ()) for one in getattr(given, "options", ())),
        }
        for name in model._get_param_names()
    }


def public_prediction(method: Method) -> Method:
    """Explain unknown arguments of a method with rows, and warn of rows in different orders."""
    known = tuple(signature(method).parameters)
    method.__qualname__ = name = method.__name__

    @wraps(method)
    def predict(self: Any, *arguments: Any, **named: Any) -> Any:
        for argument in named:
            if argument not in known:
                raise InvalidType(_unknown_of_prediction(self, name, argument))
        beside = [value for value in (*arguments[1:], *named.values()) if value is not None]
        if not beside or _ORDER_IS_CHECKED.get():
            return method(self, *arguments, **named)
        check_order(**{"X": None} | dict(zip(known[1:], arguments, strict=False)) | named)
        outside = _ORDER_IS_CHECKED.set(True)
        try:
            return method(self, *arguments, **named)
        finally:
            _ORDER_IS_CHECKED.reset(outside)

    return cast("Method", predict)


def public_methods(cls: Class) -> Class:
    """Name the methods of a base class without the class in the interpreter's own messages."""
    for name, value in vars(cls).items():
        if not name.startswith("_") and isfunction(value):
            value.__qualname__ = name
    return cls


@dataclass_transform(eq_default=False)
def with_parameters(cls: Class) -> Class:
    """Define ``__init__``, whose parameters are the annotated attributes of a class and its bases.

    Annotations also hold the constraints of parameters.

    This is what dataclasses do.  But the class is not one of them: Dask, for example, takes the
    fields of a dataclass for its whole state, and would confuse models with the same parameters.
    """
    known: dict[str, tuple[Any, Any, bool]] = dict(getattr(cls, "_parameters", {}))
    constraints: dict[str, list[Any]] = dict(getattr(cls, "_parameter_constraints", {}))
    named_only = False
    for name, kind in get_annotations(cls, eval_str=True).items():
        origin: Any = get_origin(kind)
        if kind is KW_ONLY:
            named_only = True
        elif origin is not ClassVar:
            if origin is Annotated:
                kind, constraints[name] = kind.__origin__, [*kind.__metadata__]
            known[name] = kind, getattr(cls, name), named_only
    fields = [
        (name, kind, field(default=default, kw_only=named_only))
        for name, (kind, default, named_only) in known.items()
    ]
    namespace = {"__module__": cls.__module__}
    made: Any = make_dataclass(cls.__name__, fields, eq=False, repr=False, namespace=namespace)
    cls._parameters, cls.__init__ = known, made.__init__  # type: ignore[attr-defined, misc]
    cls._parameter_constraints = constraints  # type: ignore[attr-defined]
    return cls


def refuse_unknown(
    cls: type, given: Collection[str], known: Collection[str], method: str = ""
) -> None:
    """Reject keyword arguments that a public class or its method does not have."""
    for name in given:
        if name not in known:
            raise InvalidType(unknown_argument(cls, name, method))


def unknown_argument(cls: Any, name: str, method: str = "") -> str:
    """Write the message about an unknown argument of a public class or its method."""
    what = f"{cls.__name__} has no parameter"
    of_fit = tuple(signature(cls.fit).parameters)[1:]
    own = cls._get_param_names()
    all_of_them = f"help({cls.__name__}) lists its parameters"
    if method:
        what = f"{cls.__name__}.{method} has no argument"
        all_of_them = f"its arguments are {', '.join(of_fit)}"
    elif len(own) <= _FEW_PARAMETERS:
        all_of_them = f"the parameters are {', '.join(own)}"
    others = [] if method else _others_with(cls, name)
    text = f"{what} {name!r}; {advice(name, own, of_fit, cls.__name__, others) or all_of_them}"
    return text if text.endswith("?") else f"{text}."


def _others_with(cls: object, name: str) -> list[str]:
    """Estimators for the same kind of targets that have a parameter of this name or purpose."""
    from hilboost import estimators  # which import this module

    def traits(one: object) -> list[Any]:
        return [getattr(one, trait, None) for trait in ("_kind", "ranks_groups", "is_additive")]

    known = [getattr(estimators, one) for one in estimators.__all__]
    same = [one for one in known if traits(one) == traits(cls)]
    pairs = [(one, own) for one in same for own in same_parameters(name)]
    return [f"{one.__name__}({own}=...)" for one, own in pairs if own in one._get_param_names()]


def _unknown_of_prediction(model: object, method: str, argument: str) -> str:
    """Write the message about an unknown argument of a method that predicts."""
    what = f"{type(model).__name__}.{method} has no argument {argument!r}"
    known = list(signature(getattr(model, method)).parameters)
    for template in peers("predictions").get(argument, "").split("|"):
        instead = template.format(method=method)
        needs_offset = "offset" in instead
        if hasattr(model, instead.partition("(")[0]) and (not needs_offset or "offset" in known):
            return f"{what}; call {instead}."
    return f"{what}; its arguments are {', '.join(known)}."


class ExplainedParameters(BaseEstimator):
    """Base class of estimators whose messages about parameters say what to do."""

    fit: Any
    _learner_names: ClassVar[tuple[str, ...]] = ()

    def __new__(cls, *arguments: Any, **parameters: Any) -> Self:
        """Explain unknown parameters; subclasses define ``__init__``."""
        refuse_unknown(cls, parameters, cls._get_param_names())
        return super().__new__(cls)

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters of the estimator, or of a nested one as ``<name>__<parameter>``.

        Parameters
        ----------
        **parameters
            Values by name.

        Returns
        -------
        self

        Raises
        ------
        InvalidParameter
            The estimator has no such parameter.
        """
        for name in parameters:
            if name.partition("__")[0] not in self._get_param_names():
                raise InvalidParameter(unknown_argument(type(self), name))
        return super().set_params(**parameters)

    def _validate_params(self) -> None:
        """Check the types and ranges of all parameters; messages show long values in part."""
        for name, value in self.get_params(deep=False).items():
            if is_integer(value) and not -_BEYOND <= value < _BEYOND:
                raise InvalidParameterError(
                    f"The {name!r} parameter of {type(self).__name__} must fit into 64 bits if "
                    f"it is an integer. Got {shown(value)} instead."
                )
        try:
            super()._validate_params()
        except InvalidParameterError as error:
            message, got, value = str(error).partition(" Got ")
            if len(value) > _LONGEST_VALUE:
                value = f"{' '.join(value.split())[:_LONGEST_VALUE]}..."
            if "'early_stopping'" in message:
                value += " n_iter_no_change is the number of stages without improvement."
            if "'cv_folds'" in message:
                value += " Pass a splitter as validation, and the time of rows to fit(time=...)."
            raise InvalidParameterError(f"{message}{got}{value}") from None


_OFFSET = "offset"
_ENTRY = re.compile(r"^offset : .*\n(?:[ ]+.*\n)*", re.MULTILINE)
_IN_LIST = re.compile(r", offset(?= : )")


def hide_offsets(cls: type) -> None:
    """Remove the argument ``offset`` from the signatures of a class that does not support it.

    Methods that are given one refuse it at the call.
    """
    for name in dir(cls):
        if name.startswith("_"):
            continue
        found = getattr_static(cls, name)
        code = getattr(unwrap(found), "__code__", None)
        if code is None or _OFFSET not in code.co_varnames:
            continue
        if _OFFSET not in signature(getattr(cls, name)).parameters:
            continue
        if isfunction(found):
            hidden = _without_offset(found)
        else:  # scikit-learn's descriptor of methods that may be missing
            hidden = copy(found)
            hidden.fn = _without_offset(found.fn)
            update_wrapper(hidden, hidden.fn)
        setattr(cls, name, hidden)


def _without_offset(method: Callable[..., Any]) -> Callable[..., Any]:
    known = signature(method)
    place = list(known.parameters).index(_OFFSET) - 1  # among the arguments after ``self``
    named_only = known.parameters[_OFFSET].kind is known.parameters[_OFFSET].KEYWORD_ONLY

    @wraps(method)
    def without_offset(self: Any, *arguments: Any, **named: Any) -> Any:
        given = named.get(_OFFSET)
        if given is None and not named_only and len(arguments) > place:
            given = arguments[place]
        if given is not None:
            raise InvalidParameter(
                f"{type(self).__name__} does not support offset, because its fit does not; omit "
                "it, or use BoostingRegressor or BoostingClassifier."
            )
        return method(self, *arguments, **named)

    kept = [one for name, one in known.parameters.items() if name != _OFFSET]
    without_offset.__signature__ = known.replace(parameters=kept)  # type: ignore[attr-defined]
    without_offset.__doc__ = _IN_LIST.sub("", _ENTRY.sub("", cleandoc(method.__doc__ or "") + "\n"))
    return without_offset


def changed(estimator: BaseEstimator, names: Iterable[str]) -> list[str]:
    """List the parameters among ``names`` that differ from their default values."""
    plain = signature(type(estimator).__init__).parameters
    own = (name for name in names if name in plain)  # a subclass may have fewer
    return [name for name in own if bool(getattr(estimator, name) != plain[name].default)]

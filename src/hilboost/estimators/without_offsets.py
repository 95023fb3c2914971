"""Public methods of estimators whose ``fit`` has no offsets."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from functools import update_wrapper, wraps
from inspect import cleandoc, getattr_static, signature, unwrap
from typing import Any

from hilboost.core.errors import InvalidParameter

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
        if hasattr(found, "check"):  # scikit-learn's descriptor of methods that may be missing
            hidden = copy(found)
            hidden.fn = _without_offset(found.fn)
            update_wrapper(hidden, hidden.fn)
        else:
            hidden = _without_offset(found)
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

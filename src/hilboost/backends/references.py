"""Records of arrays that compiled functions pass on as one pointer.

A record is otherwise copied to every function that is called with it, one argument for each number
in it, which takes longer than a short function does, and long to compile.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, register_model

from hilboost.backends.compiled import INTERPRETED


class Reference(types.Type):
    """The type of a pointer to a named tuple."""

    def __init__(self, record: types.BaseNamedTuple) -> None:
        self.record = record
        super().__init__(f"Reference({record})")


@register_model(Reference)
class _ReferenceModel(models.PrimitiveModel):
    def __init__(self, manager, reference):
        value_type = manager.lookup(reference.record).get_value_type()
        super().__init__(manager, reference, value_type.as_pointer())


@infer_getattr
class _FieldsOfReferences(AttributeTemplate):
    key = Reference

    def generic_resolve(self, reference: Reference, field: str) -> types.Type | None:
        record = reference.record
        return record[record.fields.index(field)] if field in record.fields else None


@lower_getattr_generic(Reference)
def _load_field(context, builder, reference, pointer, field):
    place = reference.record.fields.index(field)
    return _load(builder, cgutils.gep_inbounds(builder, pointer, 0, place))


def _load(builder, pointer):
    """Load number by number, so that the compiler leaves out those that nobody reads."""
    kind = pointer.type.pointee
    if not isinstance(kind, ir.LiteralStructType | ir.ArrayType):
        return builder.load(pointer)
    value = ir.Constant(kind, ir.Undefined)
    for place in range(len(kind)):
        part = _load(builder, cgutils.gep_inbounds(builder, pointer, 0, place))
        value = builder.insert_value(value, part, place)
    return value


@intrinsic
def by_reference(typing_context, record):
    """Keep a record in the memory of the calling function, and return a pointer to it.

    The pointer has the attributes of the record.  What is read through it is read again after each
    write to memory, so that long loops should read before they begin.
    """

    def codegen(context, builder, signature, arguments):
        return cgutils.alloca_once_value(builder, arguments[0])

    return Reference(record)(record), codegen


def _itself(record):
    return record


if INTERPRETED:
    by_reference = _itself

"""Model files changed by what they are made of: JSON, table of arrays, numbers, bytes."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np

NUMBERS = (0, 1, -1, 2, 3, 0.5, 1e300, 2**31, 2**53, 2**63, -(2**63), 2**64, 10**30)
TYPES = ("BOOL", "U8", "I8", "I32", "I64", "U64", "F16", "BF16", "F32", "F64", "C64", "F8_E4M3")


def apart(data: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """The header of the model, the table of arrays with the other metadata, and the arrays."""
    n = int.from_bytes(data[:8], "little")
    table = json.loads(data[8 : 8 + n])
    header = json.loads(table["__metadata__"]["header"])
    return header, table, data[8 + n :]


def together(header: Any, table: dict[str, Any], body: bytes) -> bytes:
    if isinstance(table.get("__metadata__"), dict):
        table = table | {"__metadata__": table["__metadata__"] | {"header": json.dumps(header)}}
    text = json.dumps(table).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + body


def any_value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(9 if depth < 3 else 6)
    if kind < 2:
        return rng.choice(NUMBERS)
    if kind == 2:
        return rng.choice([None, True, False, float("nan"), float("inf")])
    if kind == 3:
        return rng.randint(-3, 40)
    if kind < 6:
        return rng.choice(["", "a", "tree", "kernel", "auto", "own", "linear", "\ud800", "value.0"])
    if kind == 6:
        return [any_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    tag = rng.choice(["tuple", "set", "mapping", "array", "kernel", "own", "import", "x"])
    return {tag: any_value(rng, depth + 1)}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to everything in a value."""
    found = [path]
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            found += places(value[key], (*path, key))
    return found


def changed(value: Any, rng: random.Random) -> Any:
    """Something in it, at any depth, replaced, left out, doubled or moved."""
    keys = [path for path in places(value) if path]
    if not keys or not isinstance(value, dict | list):
        return any_value(rng)
    result = json.loads(json.dumps(value))
    path = rng.choice(keys)
    parent = result
    for key in path[:-1]:
        parent = parent[key]
    old, way = parent[path[-1]], rng.randrange(8)
    if way == 0:
        del parent[path[-1]]
    elif way == 1 and isinstance(parent, list):
        parent.insert(path[-1], old)
    elif way == 2:
        other = value
        for key in rng.choice(keys):
            other = other[key]
        parent[path[-1]] = other
    elif way == 3 and type(old) is int:
        parent[path[-1]] = old + rng.choice([-1, 1])
    else:
        parent[path[-1]] = any_value(rng)
    return result


def places_of(table: dict[str, Any], name: str, body: bytes) -> tuple[int, int]:
    begin, end = table[name]["data_offsets"]
    if not 0 <= begin <= end <= len(body):
        raise ValueError
    return begin, end


def mutated(data: bytes, rng: random.Random) -> bytes:
    """A file that differs from this one in one thing."""
    way = rng.randrange(10)
    if way == 0:
        end = rng.randrange(len(data) + 1)
        return data[:end] + rng.randbytes(rng.randrange(9))
    if way == 1:
        spoilt = bytearray(data or b"\0")
        n = int.from_bytes(data[:8], "little")
        regions = [size for size in (8, 8 + n, len(data)) if 0 < size <= len(data)] or [1]
        spoilt[rng.randrange(rng.choice(regions))] = rng.randrange(256)
        return bytes(spoilt)
    try:
        header, table, body = apart(data)
        names = [name for name in table if name != "__metadata__"]
        if way < 6:
            return together(changed(header, rng), table, body)
        if way == 6:
            return together(header, with_other_table(table, names, rng), body)
        if way == 7 and any(table[name]["dtype"] == "U8" for name in names):
            return with_other_text(header, table, body, names, rng)
        return with_other_number(data, table, body, rng.choice(names), rng)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return data[: rng.randrange(len(data) + 1)]


def with_other_table(table: dict[str, Any], names: list[str], rng: random.Random) -> Any:
    table, name = json.loads(json.dumps(table)), rng.choice(names)
    way = rng.randrange(4)
    if way == 0:
        table[name]["dtype"] = rng.choice(TYPES)
    elif way == 1:
        size = int(np.prod(table[name]["shape"], dtype=float))
        shapes = [[size, 1], [1, size], [], [size // 2, 2], [0, 10**18], [2**32, 2**32], [size]]
        table[name]["shape"] = rng.choice(shapes)
    elif way == 2:
        other = rng.choice(names)
        table[name], table[other] = table[other], table[name]
    else:
        metadata = table.pop("__metadata__")
        table = changed(table, rng)
        table["__metadata__"] = metadata
    return table


def with_other_text(
    header: Any, table: dict[str, Any], body: bytes, names: list[str], rng: random.Random
) -> bytes:
    """JSON in an array of bytes, which may change its length."""
    name = rng.choice([name for name in names if table[name]["dtype"] == "U8"])
    begin, end = places_of(table, name, body)
    text = json.dumps(changed(json.loads(body[begin:end]), rng)).encode()
    table = json.loads(json.dumps(table))
    for other in names:
        ends = table[other]["data_offsets"]
        table[other]["data_offsets"] = [
            e + len(text) - (end - begin) if e >= end else e for e in ends
        ]
    table[name]["data_offsets"] = [begin, begin + len(text)]
    table[name]["shape"] = [len(text)]
    return together(header, table, body[:begin] + text + body[end:])


def with_other_number(
    data: bytes, table: dict[str, Any], body: bytes, name: str, rng: random.Random
) -> bytes:
    begin, end = places_of(table, name, body)
    dtypes = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "BOOL": "u1", "U8": "u1"}
    array = np.frombuffer(body[begin:end], dtype=dtypes[table[name]["dtype"]]).copy()
    if array.dtype.kind == "f":
        value = rng.choice([0.0, -1.0, 1e300, -1e-300, np.inf, np.nan, rng.gauss(0, 1)])
    else:
        info = np.iinfo(array.dtype)
        value = rng.choice([*range(-2, 9), info.min, info.max])
        value = min(max(value, info.min), info.max)
    with np.errstate(all="ignore"):
        array[rng.randrange(len(array))] = value
    return data[: len(data) - len(body)] + body[:begin] + array.tobytes() + body[end:]

"""Model files taken apart and put together again."""

import json

import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import hilboost
from hilboost.core.errors import InvalidModelFile


def contents(path):
    with safe_open(path, framework="np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return arrays, file.metadata()


def header_of(path):
    return json.loads(contents(path)[1]["header"])


def edit(path, arrays=None, header=None, metadata=None):
    """Rewrite a file with some entries replaced."""
    old_arrays, old_metadata = contents(path)
    new_header = json.loads(old_metadata["header"]) | (header or {})
    new_metadata = old_metadata | {"header": json.dumps(new_header)} | (metadata or {})
    save_file(old_arrays | (arrays or {}), path, metadata=new_metadata)


def changed(array, index, value):
    result = array.copy()
    result[index] = value
    return result


def assert_refused(path, match="is damaged", trusted=(), **edits):
    """Rewrite a file, which then cannot be loaded."""
    edit(path, **edits)
    with pytest.raises(InvalidModelFile, match=match):
        hilboost.load(path, trusted)

"""Whatever is in a file: a model that predicts, or one kind of error, and little memory."""

import contextlib
import json
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from tests.model.editing import assert_refused, contents, edit

import hilboost
from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
    SparseKernelClassifier,
)
from hilboost.core.errors import HilboostError, InvalidModelFile
from hilboost.kernels import Linear, Matern, OnColumns

GOLDEN = Path(__file__).parent / "golden"
X = np.sin(np.outer(np.arange(60), [1.0, 2.3, 0.7]))
Y = X[:, 0] + X[:, 1] ** 2
LABELS = np.array(["low", "middle", "high"])[np.digitize(X[:, 0] + X[:, 1], [-0.4, 0.4])]
KERNEL = 2.0 * Matern([1.0, 2.0, 0.5], 2.5) + OnColumns(Linear(0.5), [2, 0])
MOST_BYTES = 2**22
MANY = settings(max_examples=8 * settings.default.max_examples)

numbers = (
    st.sampled_from([0, 1, -1, 2, 3, 2**31, 2**63 - 1, -(2**63), 2**64, 10**30])
    | st.integers()
    | st.floats()
)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=2)
    ),
    max_leaves=5,
)


def trees():
    return BoostingClassifier(n_estimators=2, max_leaf_nodes=4, early_stopping=False).fit(X, LABELS)


def levels(target_encoding=False):
    model = BoostingRegressor(n_estimators=2, max_leaf_nodes=4, categorical_features=[1, 2])
    model.set_params(target_encoding=target_encoding, min_samples_leaf=5, early_stopping=False)
    table = np.column_stack([X[:, 0], np.sign(X[:, 1].round()), X[:, 2].round(1)])
    return model.fit(table, Y)


def statistics():
    return levels(target_encoding=True)


def full():
    model = KernelBoostingRegressor(kernel=KERNEL, regularization=0.1, learning_rate=0.5)
    return model.set_params(n_estimators=2).fit(X, Y).calibrate(X + 1e-9, Y)


def several():
    model = KernelBoostingRegressor(kernel=[KERNEL, Linear()], regularization=0.1, n_estimators=2)
    return model.fit(X, Y)


def nested():
    return SparseKernelClassifier(kernel=KERNEL, regularization=0.1, n_basis=20).fit(X, LABELS)


def tags():
    model = OutputKernelBoostingRegressor("label_set", learner=Ridge(), n_estimators=2)
    return model.fit(X, [{"low"} if y < 0 else {"high", 3} for y in Y])


@pytest.fixture(
    scope="module",
    params=[trees, levels, statistics, full, several, nested, tags],
    ids=lambda make: make.__name__,
)
def content(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "model"
    hilboost.save(request.param().set_params(random_state=0), path, training_data=True)
    return path.read_bytes()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged") / "model"


WITH_ROWS = (
    *("predict", "predict_raw", "predict_proba", "predict_interval", "predict_set", "apply"),
    *("predict_weights", "decision_function", "shap_values", "staged_predict"),
)
PROPERTIES = (
    *("kernel_", "regularization_", "amplitude_", "history_", "loss_", "n_estimators_"),
    *("feature_importances_", "kernel_weights_", "classes_", "output_", "parts_"),
)


def try_all_methods(model):
    """Each public method and property has a result, or an error of ours."""
    repr(model)
    for name in (*WITH_ROWS, *PROPERTIES):
        try:
            found = getattr(model, name)
            if name in WITH_ROWS:
                list(found(X[:4]))
        except HilboostError:
            pass
        except AttributeError as error:
            if name not in str(error):  # which names what this estimator lacks
                raise


def is_safe(path):
    """Read the file, predict, and call every public method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tracemalloc.start()
        try:
            model = hilboost.load(path)
        except InvalidModelFile:
            return
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < MOST_BYTES
        if model.n_features_in_ != X.shape[1]:
            return
        with contextlib.suppress(HilboostError):
            assert len(model.predict(X)) == len(X)
        try_all_methods(model)


@MANY
@given(data=st.data())
def test_any_bytes(content, path, data):
    damaged = bytearray(content)
    n_header = int.from_bytes(content[:8], "little")
    regions = st.sampled_from([8, 8 + n_header, len(content)])
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, data.draw(regions) - 1))
        damaged[place] = data.draw(st.integers(0, 255))
    path.write_bytes(damaged)
    is_safe(path)


@pytest.mark.parametrize("make", [trees, levels])
def test_gains_are_numbers(make, tmp_path):
    path = tmp_path / "model"
    hilboost.save(make(), path)
    gain = contents(path)[0]["gain"].copy()
    gain[0] = np.nan
    assert_refused(path, arrays={"gain": gain}, match="gain is inconsistent")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("kernels.chosen", np.array([0, 2])),
        ("kernels.chosen", np.array([0, -1])),
        ("kernels.chosen", np.array([0])),
        ("kernels.norms", np.ones((2, 3))),
        ("kernels.norms", np.array([[1.0, 0.0], [1.0, -1.0]])),
        ("kernels.norms", np.array([[1.0, 0.0], [1.0, np.nan]])),
    ],
)
def test_stages_of_several_kernels(name, values, tmp_path):
    path = tmp_path / "model"
    hilboost.save(several(), path, training_data=True)
    assert_refused(path, arrays={name: values}, match=f"{name} is inconsistent")


@given(data=st.data())
def test_any_length(content, path, data):
    end = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:end] + data.draw(st.binary(max_size=20)))
    is_safe(path)


def draw_changed(data, value):
    """The value with something in it, at any depth, replaced or left out."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    key = data.draw(st.sampled_from(list(keys)))
    result = value.copy()
    if isinstance(value[key], dict | list) and value[key] and data.draw(st.booleans()):
        result[key] = draw_changed(data, value[key])
    elif data.draw(st.integers(0, 9)) == 0:
        del result[key]
    else:
        result[key] = data.draw(values)
    return result


@MANY
@given(data=st.data())
def test_any_header(content, path, data):
    path.write_bytes(content)
    metadata = contents(path)[1]
    header = draw_changed(data, json.loads(metadata["header"]))
    edit(path, metadata={"header": json.dumps(header)})
    is_safe(path)


@MANY
@given(data=st.data())
def test_any_table_of_arrays(content, path, data):
    """Names, dtypes, shapes and offsets in the safetensors header."""
    n_header = int.from_bytes(content[:8], "little")
    table = json.loads(content[8 : 8 + n_header])
    metadata = table.pop("__metadata__")
    kinds = ["BOOL", "U8", "I32", "I64", "U64", "F16", "BF16", "F32", "F64", "F8_E4M3", "C64"]
    name = data.draw(st.sampled_from(sorted(table)))
    match data.draw(st.sampled_from(["dtype", "shape", "other", "any"])):
        case "dtype":
            table[name]["dtype"] = data.draw(st.sampled_from(kinds))
        case "shape":
            size = int(np.prod(table[name]["shape"]))
            shapes = [[size, 1], [1, size], [], [size // 2, 2], [0, 10**18], [2**32, 2**32]]
            table[name]["shape"] = data.draw(st.sampled_from(shapes))
        case "other":
            other = data.draw(st.sampled_from(sorted(table)))
            table[name], table[other] = table[other], table[name]
        case _:
            table = draw_changed(data, table)
    text = json.dumps({"__metadata__": metadata, **table}).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + n_header :])
    is_safe(path)


@MANY
@given(data=st.data())
def test_any_array(content, path, data):
    path.write_bytes(content)
    arrays = contents(path)[0]
    name = data.draw(st.sampled_from(sorted(name for name in arrays if arrays[name].size)))
    array = arrays[name].copy()
    if array.dtype.kind == "f":
        value = data.draw(st.floats(width=32))
    elif array.dtype.kind == "b":
        value = data.draw(st.booleans())
    else:
        info = np.iinfo(array.dtype)
        few = st.integers(max(-2, int(info.min)), 40)
        value = data.draw(few | st.integers(int(info.min), int(info.max)))
    array.flat[data.draw(st.integers(0, array.size - 1))] = value
    edit(path, arrays={name: array})
    is_safe(path)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "1" * 10_000, '"' * 9])
def test_headers_that_no_parser_likes(content, path, text):
    path.write_bytes(content)
    assert_refused(path, metadata={"header": text})


# Old files


@pytest.mark.parametrize("name", ["trees_format_1", "kernels_format_1"])
def test_old_files_are_read(name):
    table = X.copy()
    if name.startswith("trees"):
        table[::7, 1] = np.nan
    expected = json.loads((GOLDEN / f"{name}.json").read_text())
    loaded = hilboost.load(GOLDEN / f"{name}.hilboost")
    np.testing.assert_allclose(loaded.predict_proba(table), expected, rtol=1e-9, atol=1e-12)

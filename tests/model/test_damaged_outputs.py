"""Edited files of output kernel models: refused, whatever was edited."""

import json

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from tests.model.editing import assert_refused, changed, contents, edit, header_of

import hilboost
from hilboost import OutputKernelBoostingRegressor
from hilboost.core.errors import InvalidData
from hilboost.outputs import Hierarchy

X = np.random.default_rng(0).normal(size=(40, 3))


def saved(tmp_path, output, y, learner="extra_trees"):
    path = tmp_path / "model"
    model = OutputKernelBoostingRegressor(
        output, learner=learner, n_estimators=3, learning_rate=0.5, random_state=0
    )
    model.fit(X, y).save(path, training_data=True)
    return path


def refuse(path, arrays=None, header=None):
    before = path.read_bytes()
    assert_refused(path, arrays=arrays, header=header)
    path.write_bytes(before)


def fields_of(path):
    return header_of(path)["output"]


def text(labels):
    return np.frombuffer(json.dumps(labels).encode(), dtype=np.uint8)


ROWS = np.column_stack([X[:, 0] ** 2, np.sin(X[:, 1])])
WORDS = ["abc", "bcd", "abcd", "cab"] * 10
SENTENCES = [["a", "b", "c"]] * 40
GRAPHS = [(["C", "O", "C"], [(0, 1), (1, 2)]), (["C", "O"], [(0, 1)])] * 20
NODES = ["cat", "dog", "elm", "oak"] * 10
PARENTS = {"cat": "pet", "dog": "pet", "elm": "tree", "oak": "tree"}
SHARES = np.abs(X) / np.abs(X).sum(axis=1, keepdims=True)

EDITS = {
    "vectors": (
        "linear",
        ROWS,
        {"training": [ROWS[:, :1], ROWS[:0], np.full_like(ROWS, np.nan), ROWS.astype("f4")]},
        {"shape": [[], [3], [-2], [2.0], None, [2, 10**9], [True, 2]]},
    ),
    "rows": (
        "gaussian",
        ROWS,
        {
            "training": [ROWS[:5], ROWS[:, :0]],
            "pivots": [np.zeros(1, dtype=np.int64), None],
            "codes": [np.zeros((40, 3)), None],
        },
        {"kernel": [None, "gaussian", {"type": "neural"}], "shape": [[3]]},
    ),
    "label_sets": (
        "label_set",
        [{"a"}, {"b"}] * 20,
        {
            "training": [np.ones((2, 3), dtype=bool), np.ones((0, 2), dtype=bool)],
            "scale": [np.zeros(2), np.ones(3)],
            "labels": [text(["a"]), text(["a", "a"]), text([["a"], "b"]), text("ab"), text("[")],
        },
        {"mean_size": [0, 3, 1.0, True, None], "dtype": ["V8", "x", 3, "O"]},
    ),
    "rankings": (
        "ranking",
        np.array([[1, 2, 3], [3, 1, 2]] * 20),
        {"training": [np.array([[1, 2, 2]]), np.array([[1, 2]]), np.zeros((0, 3), dtype=int)]},
        {"distance": ["hamming", "spear", None, []], "ties": [None, 1]},
    ),
    "distributions": (
        "distribution",
        [[1.0, 2.0], [2.0, 3.0]] * 20,
        {"training": [np.arange(64.0)[None, ::-1], np.ones((2, 63))]},
        {},
    ),
    "compositions": (
        "composition",
        SHARES,
        {"training": [-SHARES, SHARES[:, :2], 2 * SHARES]},
        {"geometry": ["aitchison", "flat", None]},
    ),
    "matrices": (
        "positive_matrix",
        np.array([np.eye(2), 2 * np.eye(2)] * 20),
        {"training": [-np.eye(2)[None], np.eye(3)[None], np.ones((1, 2, 3)), np.ones((2, 2))]},
        {},
    ),
    "strings": (
        "string",
        WORDS,
        {
            "labels": [text(["abc"] * 2), text([1, 2]), text([]), np.array([255], dtype=np.uint8)],
            "grams": [text(["abc", "bcd"]), text(["abc", "bcd", "ca"])],
        },
        {
            "lengths": [[0, 3], [3], [3, 2], [3, 10**9 + 0.5], [1, 3], [3, 2**60]],
            "normalise": [1],
            "string_lengths": [[4, 3], [3], None, [-1, 3], [3, 2**40], [0.5, 3]],
            "max_nodes": [0, None, 2.5, True],
        },
    ),
    "tokens": (
        "string",
        SENTENCES,
        {
            "labels": [text(["abcd"]), text([{"tuple": [1, 2, 3, 4]}, "abc"]), text([["a"] * 4])],
            "grams": [text([{"tuple": ["x", "b", "c"]}]), text([{"tuple": [["a"], "b", "c"]}])],
        },
        {},
    ),
    "graphs": (
        "graph",
        GRAPHS,
        {
            "labels": [
                text([]),
                text([1, 2]),
                text([{"tuple": [{"tuple": ["C", "O"]}, {"tuple": [{"tuple": [0, 2]}]}]}]),
                text([{"tuple": [{"tuple": ["C", "O"]}, {"tuple": [{"tuple": [1, 0]}]}]}]),
                text([{"tuple": [{"tuple": ["C"]}, {"tuple": []}]}]),
                text([["C"], []]),
            ]
        },
        {"n_iterations": [-1, 1, 2.0, 10**9, None], "normalize": [0, "yes", None]},
    ),
    "hierarchy": (
        Hierarchy(PARENTS),
        NODES,
        {
            "labels": [text(list("abcde")), text(list("abcdee"))],
            "parent": [np.full(6, 5), np.full(6, -2), np.arange(6)],
            "depth": [np.zeros(6, dtype=int)],
            "length": [np.zeros(6)],
            "training": [np.array([6]), np.array([2, 1]), np.array([-1]), np.zeros(0, dtype=int)],
        },
        {},
    ),
    "precomputed": (
        "precomputed",
        ROWS @ ROWS.T,
        {
            "diagonal": [np.ones(3), np.full(40, -1.0)],
            "gram": [np.ones((3, 3))],
            "pivots": [np.array([0, 0]), np.array([0, 40])],
        },
        {},
    ),
}


@pytest.mark.parametrize(("output", "y", "arrays", "fields"), EDITS.values(), ids=list(EDITS))
def test_edited_outputs(output, y, arrays, fields, tmp_path):
    path = saved(tmp_path, output, y)
    stored, own = contents(path)[0], fields_of(path)
    for name, others in arrays.items():
        for other in others:
            value = stored[f"output.{name}"] + 1 if other is None else other
            refuse(path, {f"output.{name}": value})
    for name, others in fields.items():
        for other in others:
            refuse(path, header={"output": own | {name: other}})
    for other in (None, [], {}, own | {"type": "neural"}, own | {"type": []}):
        refuse(path, header={"output": other})
    for number in (0, -1, 1.5, None, 2**60, True):
        refuse(path, header={"output": own | {"n_train": number}})
    rows, codes = stored["span.rows"], stored["span.codes"]
    for edited in (
        {"span.rows": changed(rows, 0, 10**6)},
        {"span.rows": changed(rows, 0, -1)},
        {"span.rows": rows[:0]},
        {"span.codes": codes[:, :0]},
        {"span.codes": changed(codes, (0, 0), np.nan)},
    ):
        refuse(path, edited)
    refuse(path, header={"parameters": {"output": "neural"}})
    refuse(path, header={"parameters": {"decode": "sideways"}})
    assert hilboost.load(path).predict(X) is not None


@pytest.mark.parametrize(
    "output",
    [
        {"own": "Rankings", "values": {"distance": "kemeny", "ties": False, "more": 1}},
        {"own": "SquaredError", "values": {}},
        {"own": "os", "values": {}},
        {"own": ["Rankings"], "values": {}},
        {"own": "Rankings"},
        {"tuple": 3},
        {"array": "start"},
        {"mapping": [[1]]},
        {"mapping": [[[1], 1]]},
        {"what": []},
        {"kernel": {"type": "neural"}},
        {},
        3,
        None,
    ],
    ids=str,
)
def test_edited_output_parameters(output, tmp_path):
    refuse(saved(tmp_path, "linear", ROWS), header={"parameters": {"output": output}})


@pytest.mark.parametrize("change", [{"stages": "half"}, {"stages": None}])
def test_edited_kernel_stages(change, tmp_path):
    path = saved(tmp_path, "linear", ROWS, "kernel")
    refuse(path, header={"output": fields_of(path) | change})


def test_edited_linear_models(tmp_path):
    path = saved(tmp_path, "linear", ROWS, Ridge())
    header = header_of(path)
    for key, value in (
        ("stage", -1),
        ("stage", 10**9),
        ("place", 1),
        ("place", 10**30),
        ("columns", [0, 3]),
        ("columns", [1, 1]),
        ("columns", 3),
        ("coefficient", [1.0]),
        ("coefficient", [1.0, float("nan")]),
        ("model", 3),
        ("model", {"own": "Ridge", "values": {}}),
        ("model", {"own": "LinearModel", "values": {"terms": 3}}),
        ("model", {"own": "LinearModel", "values": {"terms": [[1.0, 2.0]]}}),
        ("model", {"own": "LinearModel", "values": {"terms": []}}),
    ):
        others = [header["others"][0] | {key: value}, *header["others"][1:]]
        refuse(path, header={"others": others})
    array = contents(path)[0]["value.0"]
    for wrong in (array[:, :1], array.astype(np.float32), array * np.inf, array[0]):
        refuse(path, {"value.0": np.ascontiguousarray(wrong)})
    for kind in (np.complex64, np.float32, bool):
        refuse(path, {"value.1": contents(path)[0]["value.1"].astype(kind)})
    refuse(path, header={"parameters": header["parameters"] | {"learner": "ok3"}})


def test_points_that_overflow_are_refused(tmp_path):
    path = saved(tmp_path, "linear", ROWS)
    arrays = contents(path)[0]
    edit(path, {name: np.full_like(arrays[name], 1e300) for name in ("values", "coefficient")})
    model = hilboost.load(path)
    with np.errstate(all="ignore"):
        for method in (model.predict, model.predict_weights):
            with pytest.raises(InvalidData, match="row 0 of X is not finite"):
                method(X)

"""Whatever is in the file of a checkpoint: a fit that goes on, or an error of ours."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.editing import contents, edit, header_of

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingClassifier,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
)
from hilboost.callbacks import Checkpoint
from hilboost.core.errors import HilboostError, InvalidModelFile
from hilboost.kernels import Gaussian, Linear

X = np.sin(np.outer(np.arange(60), [1.0, 2.3, 0.7]))
Y = X[:, 0] + X[:, 1] ** 2
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [0.2, 0.8])]
TWO = np.column_stack([Y, X[:, 2]])
TREES = {"n_estimators": 4, "max_leaf_nodes": 4, "learner": "tree", "early_stopping": False}
FOLDS = TREES | {"early_stopping": True, "cv_folds": 2, "eval_metric": "mae"}
LEVELS = {"categorical_features": [1], "target_encoding": False, "min_samples_leaf": 2}
MACHINE = {"kernel": Gaussian(1.0), "regularization": 0.1, "n_estimators": 4}
SEVERAL = MACHINE | {"kernel": [Gaussian(1.0), Linear()]}


def several_learners():
    machine = KernelBoostingRegressor(kernel=Gaussian(1.0), regularization=0.1, n_basis=8)
    return BoostingRegressor(**TREES | {"learner": ["tree", machine, "linear"]})


FITS = {
    "trees": (lambda: BoostingClassifier(**TREES), LABELS),
    "folds": (lambda: BoostingRegressor(**FOLDS), Y),
    "levels": (lambda: BoostingRegressor(**TREES, **LEVELS), Y),
    "list": (several_learners, Y),
    "full": (lambda: KernelBoostingRegressor(**MACHINE, stages="full"), Y),
    "sparse": (lambda: KernelBoostingRegressor(**MACHINE, stages="sparse", n_basis=9), Y),
    "several": (lambda: KernelBoostingRegressor(**SEVERAL, stages="sparse", n_basis=9), Y),
    "reweighted": (
        lambda: KernelBoostingRegressor(**MACHINE, stages="sparse", n_basis=9, reweight=True),
        Y,
    ),
    "block": (lambda: KernelBoostingRegressor(**MACHINE, stages="block", n_basis=20), Y),
    "classes": (lambda: KernelBoostingClassifier(**MACHINE, stages="full"), LABELS),
    "outputs": (
        lambda: OutputKernelBoostingRegressor("gaussian", learner="ok3", n_estimators=4),
        TWO,
    ),
}

values = st.recursive(
    st.sampled_from([None, True, 0, 1, -1, 2.5, -5, 10**30, float("nan"), float("inf"), "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.just("x"), inner, max_size=1),
    max_leaves=3,
)


def fit(name, *callbacks):
    make, y = FITS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make().set_params(random_state=0).fit(X, y, callbacks=callbacks)


def write(name, path):
    """Write the checkpoint of a fit after two stages."""
    fit(name, Checkpoint(path), lambda event: event.stage == 2)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The content of the checkpoint of each fit after two stages."""
    path, found = tmp_path_factory.mktemp("whole") / "c", {}
    for name in FITS:
        path.unlink(missing_ok=True)
        write(name, path)
        found[name] = path.read_bytes()
    return found


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged") / "c"


def places(value, place=()):
    """Paths to everything in a JSON value."""
    yield place
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*place, key))


def replaced(header, place, new):
    value = header
    for key in place[:-1]:
        value = value[key]
    if new is ...:
        del value[place[-1]]
    else:
        value[place[-1]] = new


@pytest.mark.parametrize("name", FITS)
@given(data=st.data())
def test_any_header(written, path, name, data):
    path.write_bytes(written[name])
    header = header_of(path)
    first = data.draw(st.sampled_from(sorted(header)))
    place = data.draw(st.sampled_from([(first, *rest) for rest in places(header[first])]))
    replaced(header, place, data.draw(values | st.just(...)))
    edit(path, metadata={"header": json.dumps(header)})
    goes_on_or_is_refused(name, path)


@pytest.mark.parametrize("name", FITS)
@given(data=st.data())
def test_any_array(written, path, name, data):
    path.write_bytes(written[name])
    arrays = contents(path)[0]
    chosen = data.draw(st.sampled_from(sorted(key for key in arrays if arrays[key].size)))
    array = arrays[chosen].copy()
    if data.draw(st.booleans()):
        array = array[:-1]
    else:
        new = data.draw(st.sampled_from([0, 1, 3, 100, np.nan if array.dtype.kind == "f" else 2]))
        array.flat[data.draw(st.integers(0, array.size - 1))] = new
    edit(path, arrays={chosen: np.ascontiguousarray(array)})
    goes_on_or_is_refused(name, path)


def goes_on_or_is_refused(name, path):
    try:
        model = fit(name, Checkpoint(path))
    except HilboostError:
        return
    assert len(model.predict(X)) == len(X)


CHOSEN = [
    *(("learning_rate", wrong) for wrong in (-5, 0, "x", float("inf"), None)),
    *(("cv_folds", wrong) for wrong in (0, -1, 2.5, True)),
    *(("max_features", wrong) for wrong in (0, 1.5)),
    *(("max_leaf_nodes", 1), ("n_iter_no_change", 0), ("n_shards", 0), ("early_stopping", 1)),
]
HEADERS = [
    *({"n_members": wrong} for wrong in (0, -1, 2.0, True, None, 10**30)),
    *({"train": wrong} for wrong in ([], [1.0], [1.0, "2", 3.0], [float("nan")] * 3, None, 3)),
    *({"validation": wrong} for wrong in ([1.0], ["x"] * 3, 5)),
    *({"metrics": wrong} for wrong in ({"mae": [1.0]}, {"mae": None}, [])),
    *({"digest": wrong} for wrong in ("", None)),
]


@pytest.mark.parametrize("changed", HEADERS, ids=str)
def test_values_of_the_header(written, path, changed):
    path.write_bytes(written["trees"])
    edit(path, header=changed)
    with pytest.raises(InvalidModelFile, match="is damaged"):
        fit("trees", Checkpoint(path))


@pytest.mark.parametrize(("name", "wrong"), CHOSEN, ids=str)
def test_chosen_parameters(written, path, name, wrong):
    path.write_bytes(written["trees"])
    chosen = header_of(path)["chosen"]
    edit(path, header={"chosen": chosen | {name: wrong}})
    with pytest.raises(InvalidModelFile, match=f"is damaged: {name} of chosen is inconsistent"):
        fit("trees", Checkpoint(path))

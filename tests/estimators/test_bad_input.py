"""Refusals say what was wrong, where, and what to do; odd but good input works."""

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import TimeSeriesSplit
from tests.cases import PLAIN
from tests.refusals import refused
from tests.table_estimators import ALL

from hilboost import (
    BoostingClassifier,
    BoostingRanker,
    BoostingRegressor,
    OutputKernelBoostingRegressor,
    SparseKernelClassifier,
)
from hilboost.callbacks import ProgressBar
from hilboost.core.errors import (
    DataWarning,
    IncompatibleParts,
    InvalidData,
    InvalidParameter,
    InvalidType,
)
from hilboost.engine.ops.cpu.grow_stages import grow_stages
from hilboost.losses.registry import regression_losses
from hilboost.metrics import FunctionMetric

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X[:, 0] + 0.1 * RNG.normal(size=40)
LABELS = (Y > 0).astype(int)


def regressor(*arguments, **parameters):
    return BoostingRegressor(*arguments, **PLAIN | parameters)


def classifier(*arguments, **parameters):
    return BoostingClassifier(*arguments, **PLAIN | parameters)


def changed(array, index, value):
    result = array.astype(type(value) if isinstance(value, str) else float)
    result = array.astype(object) if isinstance(value, str) else result
    result[index] = value
    return result


# Targets


CONTINUOUS = r"Unknown label type: continuous; y contains .*\d, but must contain classes. Use a reg"
SETS = [{"a", "b"} if y > 0 else {"a"} for y in Y]
BOUNDS = np.column_stack([Y, changed(Y, 3, np.inf)])


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (regressor(), changed(Y, 3, np.nan), "Input y contains NaN"),
        (regressor(), changed(Y, 3, np.inf), "Input y contains infinity .* in row 3; remove"),
        (regressor(), changed(Y, 3, -np.inf), "Input y contains infinity"),
        (regressor("normal"), BOUNDS, "in row 3 of .*name the columns 'lower' and 'upper'"),
        (regressor(), changed(Y, 3, "high"), "'high' in row 3.*use BoostingClassifier for classes"),
        (regressor(), Y + 1j, "Complex data not supported"),
        (regressor(), np.zeros((40, 2, 2)), "3 dimensions|dim 3"),
        (regressor(), None, "^BoostingRegressor.fit requires y to be passed, but the target y is"),
        (classifier(), None, "^BoostingClassifier.fit requires y to be passed"),
        (regressor(), Y[:-1], "inconsistent numbers of rows: 40 and 39"),
        (classifier(), LABELS[:-1], "inconsistent numbers of rows: 40 and 39"),
        (classifier(), Y, CONTINUOUS),
        (classifier(), SETS, "one class per row. For several labels per row, use Out"),
        (classifier(), X[:, :2] > 0, r"shape .* instead\. For several labels per row, use Ou"),
        (regressor("poisson"), changed(np.abs(Y), 5, -1.0), "row 5 has -1"),
        (regressor("gamma"), changed(np.abs(Y), 5, 0.0), "row 5 has 0"),
        (regressor("tweedie"), changed(np.abs(Y), 5, -2.0), "row 5 has -2"),
        (regressor("poisson"), np.zeros(40), "not zero in every row"),
        (regressor("quantile"), np.column_stack([Y, Y]), "one target column; got 2"),
    ],
)
def test_targets(model, y, message):
    refused(ValueError, message, model.fit, X, y)


def test_the_index_of_x_in_another_order():
    """Rows are matched by position, as in scikit-learn: a shuffled series is often a mistake."""
    table, y = pd.DataFrame(X, columns=list("abc")), pd.Series(Y)
    expected = regressor().fit(X, Y).predict(X)
    for index in (table.index, table.index + 100, table.index % 2):
        model = regressor().fit(table, y.set_axis(index))
        np.testing.assert_array_equal(model.predict(table), expected)
    shuffled = y.sample(frac=1, random_state=0)
    with pytest.warns(DataWarning, match=r"y has the index of X in a diff.*; pass y.loc\[X.index"):
        regressor().fit(table, shuffled)
    with pytest.warns(DataWarning, match=r"pass sample_weight.loc\[X.index\]"):
        regressor().fit(table, y, shuffled**2)
    with pytest.warns(DataWarning, match=r"pass y_val.loc\[X_val.index\]"):
        regressor().fit(table, y, X_val=table, y_val=shuffled)
    with pytest.warns(DataWarning, match=r"pass offset.loc\[X.index\]"):
        regressor().fit(table, y, offset=shuffled)
    groups = pd.Series(np.arange(len(Y)) // 4)
    with pytest.warns(DataWarning, match=r"pass groups.loc\[X.index\]"):
        BoostingRanker(n_estimators=2).fit(table, groups.index % 2, groups=groups[::-1])


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_probabilities_of_a_support_vector_loss(loss):
    model = classifier(loss)
    for state in (model, model.fit(X, LABELS)):
        assert not hasattr(state, "predict_proba")
        with pytest.raises(AttributeError) as caught:
            _ = state.staged_predict_proba
        message = f"loss='{loss}' has scores but no probabilities; use decision_function, fit with"
        assert message in str(caught.value.__cause__)


def test_column_vector_as_target_warns():
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        model = regressor().fit(X, Y[:, None])
    np.testing.assert_array_equal(model.predict(X), regressor().fit(X, Y).predict(X))


# Inputs


def test_infinite_input_names_the_column():
    model = BoostingRegressor(learner="linear", n_estimators=2).fit(X, Y)
    odd = changed(X, (7, 1), np.inf)
    for use in (lambda: model.predict(odd), lambda: model.fit(-odd, Y)):
        refused(InvalidData, r"infinity.*in column 1\. Replace it", use)
    with pytest.raises(InvalidData, match=r"infinity.*in column 'b'\. Replace it"):
        model.fit(pd.DataFrame(odd, columns=["a", "b", "c"]), Y)


@pytest.mark.parametrize("estimator", [regressor, classifier])
def test_text_names_the_column(estimator):
    with pytest.raises(InvalidData, match=r"column 1 contains text \('red' in row 7\) and numbers"):
        estimator().fit(changed(X, (7, 1), "red"), LABELS)
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(c="red")
    with pytest.raises(
        InvalidData, match="column 'c' contains text .'red' in row 0.*categorical_features=None"
    ):
        estimator(categorical_features=None).fit(table, LABELS)
    model = estimator().fit(X, LABELS)
    refused(InvalidData, "column 1 contains text", model.predict, changed(X, (7, 1), "red"))
    with pytest.raises(InvalidData, match="column 1 contained numbers .* but contains text now"):
        model.predict([[0.0, "red", 0.0]])


def test_empty_data():
    for shape in ((0, 3), (40, 0)):
        with pytest.raises(ValueError, match=r"0 (sample|feature)\(s\)"):
            regressor().fit(np.zeros(shape), Y[: shape[0]])
    model = regressor().fit(X, Y)
    refused(ValueError, r"0 sample\(s\)", model.predict, X[:0])


FILES = {
    "big_test.parquet": "pandas.read_parquet",
    Path("big_test.PQ"): "pandas.read_parquet",
    "new.csv.gz": "pandas.read_csv",
    Path("new.xlsx"): "pandas.read_excel",
    "new.feather": "pandas.read_feather",
    "new.svm": "sklearn.datasets.load_svmlight_file",
}


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        (X[:, 0], r"^Expected 2D array, got 1D array instead: X must have .* one column\.$"),
        (3.0, "^Expected 2D array, got scalar array instead: X must have rows and columns"),
        (None, "^X is None; pass a table with rows and columns"),
        ("table.csv", "^X is the text 'table.csv'; read the file first, as with pandas.read_csv"),
        *((name, rf"^X is .*; read the file first, as with {FILES[name]}\.$") for name in FILES),
    ],
)
def test_no_table(rows, match):
    refused((InvalidData, InvalidType), match, regressor().fit, rows, Y)


SWAPPED = "X and y seem to be swapped, because X has one dimension and y two; pass the table first"


@pytest.mark.parametrize("name", ALL)
def test_table_and_target_are_swapped(name):
    _, make = ALL[name]
    refused(InvalidData, SWAPPED, make().fit, Y, X)


@pytest.mark.parametrize(
    "as_table", [np.asarray, pd.DataFrame, np.ndarray.tolist, scipy.sparse.csr_matrix, pl.DataFrame]
)
@pytest.mark.parametrize("as_target", [np.asarray, pd.Series, np.ndarray.tolist, pl.Series])
def test_forms_of_swapped_tables_and_targets(as_table, as_target):
    model = regressor().fit(X, Y)
    for use in (model.fit, model.score, model.report, model.calibrate):
        refused(InvalidData, SWAPPED, use, as_target(Y), as_table(X))
    with pytest.raises(InvalidData, match="X_val and y_val seem to be swapped"):
        model.fit(X, Y, X_val=as_target(Y), y_val=as_table(X))


def test_targets_with_one_column_are_not_swapped():
    for target in (Y, Y[:, None], Y[:, None].tolist(), None):
        refused(InvalidData, "Expected 2D array", regressor().fit, Y, target)


@pytest.fixture(scope="module")
def fitted_models():
    models = regressor(), classifier(), SparseKernelClassifier(n_basis=5)
    return [model.fit(X, LABELS) for model in models]


READ_FIRST = "read the file first, as with pandas.read_csv"
OF_CHUNKS = r"a TextFileReader; pass pandas\.concat\(X\), or write it as Parquet for hilboost"
A_TABLE = "pass a table: a data frame, an array, or a list of rows"


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda path: path, f"Path; {READ_FIRST}"),
        (lambda path: path.read_bytes(), f"a bytes; {READ_FIRST}"),
        (lambda path: io.StringIO(path.read_text()), f"a StringIO; {READ_FIRST}"),
        (lambda path: io.BytesIO(path.read_bytes()), f"a BytesIO; {READ_FIRST}"),
        (lambda path: csv.reader(path.read_text().split()), f"a reader; {READ_FIRST}"),
        (lambda path: csv.DictReader(path.read_text().split()), f"a DictReader; {READ_FIRST}"),
        (lambda path: pd.read_csv(io.BytesIO(path.read_bytes()), chunksize=10), OF_CHUNKS),
        (lambda path: pa.Table.from_pandas(pd.read_csv(path)).to_reader(), r"pass X\.read_all\(\)"),
        (lambda path: (row for row in X), r"a generator; pass its rows, list\(X\)"),
        (lambda path: map(list, X), r"a map; pass its rows, list\(X\)"),
        (lambda path: set(Y), f"a set; {A_TABLE}"),
        (lambda path: object(), f"an object; {A_TABLE}"),
        (lambda path: X.copy, f"a builtin_function_or_method; {A_TABLE}"),
    ],
)
def test_what_has_to_be_read_first(read, message, fitted_models, tmp_path):
    path = tmp_path / "table.csv"
    pd.DataFrame(X, columns=list("abc")).to_csv(path, index=False)
    for model in fitted_models:
        refused(InvalidType, f"^X is .*{message}", model.predict, read(path))
        refused(InvalidType, f"^X is .*{message}", clone(model).fit, read(path), LABELS)


def test_callbacks_that_cannot_be_called():
    for callbacks in (3, [3], "file", ["file"], None):
        with pytest.raises(
            InvalidType, match=r"list of functions of an event, or .* ProgressBar\("
        ):
            regressor().fit(X, Y, callbacks=callbacks)
    with pytest.raises(InvalidType, match=r"ProgressBar is a class; write ProgressBar\(\)"):
        regressor().fit(X, Y, callbacks=[ProgressBar])


@pytest.mark.parametrize("learner", [Ridge(), "kernel"], ids=["ridge", "kernel"])
def test_sparse_input(learner):
    with pytest.raises(InvalidType, match=r"[Ss]parse data.*'.toarray\(\)'.*learner='tree'"):
        regressor(learner=learner).fit(scipy.sparse.csr_matrix(X), Y)


def test_other_columns():
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    model = regressor().fit(table, Y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    refused(ValueError, "same order", model.predict, table[["b", "a", "c"]])
    refused(ValueError, "unseen at fit time", model.predict, table.rename(columns={"b": "z"}))
    model = regressor().fit(X, Y)
    for n_columns in (2, 4):
        with pytest.raises(ValueError, match=f"X has {n_columns} features, but BoostingRegressor"):
            model.predict(np.zeros((5, n_columns)))


def test_integers_beyond_floats():
    one = [1.0] * 4 + [10**400] + [2.0] * 35
    refused(InvalidData, "numbers; row 4 has 1000", regressor().fit, X, Y, offset=one)
    refused(InvalidData, r"y contains.*1000.* in row 4", regressor().fit, X, one)
    metric = FunctionMetric(lambda y, predicted: 10**400)
    model = regressor(early_stopping=True, eval_metric=metric)
    refused(IncompatibleParts, "must return a number; it returned 1000", model.fit, X, Y)
    rows = [[10**400, 1.0]] * 40
    refused(InvalidData, "Y must contain rows", OutputKernelBoostingRegressor().fit, X, rows)


@pytest.mark.parametrize("model", [regressor(), OutputKernelBoostingRegressor(n_estimators=1)])
def test_leaves_that_no_split_can_have(model):
    model.set_params(min_samples_leaf=21)
    with pytest.warns(DataWarning, match="=21 allows no split of 40 rows.* set it to at most 20"):
        assert len(np.unique(model.fit(X, Y).predict(X))) == 1
    with pytest.warns(DataWarning, match="no split of 39 rows.* set it to at most 19"):
        model.fit(X[1:], Y[1:])
    model.fit(X, Y, np.full(40, 1.05))  # leaves are sums of weights
    model.set_params(min_samples_leaf=20).fit(X, Y)


# Weights


NO_NUMBERS = r"sample_weight must contain numbers; row [01] has"


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (changed(np.ones(40), 4, -1.0), "must not be negative; row 4 has -1. Use 0"),
        (np.array(["Ideal"] * 40, dtype=object), NO_NUMBERS),
        (np.array([1.0, None] * 20, dtype=object), NO_NUMBERS),
        ([10**400] * 40, NO_NUMBERS),
        (np.array([[1], [1, 2]] * 20, dtype=object), NO_NUMBERS),
        (np.zeros(40), r"zero for every row|at least one non-zero"),
        (changed(np.ones(40), 4, np.nan), "sample_weight contains NaN"),
        (changed(np.ones(40), 4, np.inf), "sample_weight contains infinity"),
        ([1, 2], "one value for each of the 40 rows of X; got 2"),
        (np.ones((40, 2)), "[Ss]ample.weight"),
    ],
)
def test_weights(weight, message):
    refused(ValueError, message, regressor().fit, X, Y, sample_weight=weight)


def test_tiny_weights_warn():
    with pytest.warns(DataWarning, match="Scale the weights so that they sum to about"):
        regressor(min_samples_leaf=5).fit(X, Y, sample_weight=np.full(40, 1e-3))


def test_a_learner_without_weights_says_so():
    from sklearn.neighbors import KNeighborsRegressor

    with pytest.raises(InvalidData, match="KNeighborsRegressor does not support sample weights"):
        regressor(learner=KNeighborsRegressor()).fit(X, Y, sample_weight=np.arange(1, 41))


# Parameters


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        (regressor("squared_eror"), "[Dd]id you mean 'squared_error'"),
        (regressor("tweedi"), "'tweedie'"),
        (regressor("tweedie:1.7"), r"to its class, as in loss=hilboost\.losses\.Tweedie\(power"),
        (regressor("x"), "Valid values"),
        (classifier("logloss"), "loss='logloss'.*[Dd]id you mean 'log_loss'"),
        (regressor(learner="trees"), "learner='trees' is not known.*[Dd]id you mean 'tree'"),
    ],
)
def test_unknown_losses_and_learners(model, hint):
    refused(InvalidParameter, hint, model.fit, X, LABELS)


def test_functions_are_no_losses_of_classes():
    model = classifier(lambda y, raw: (raw, y))
    refused(
        InvalidType, "got <function .*, and only regressors take functions", model.fit, X, Y > 0
    )


A_LEARNER = "learner must be 'auto', 'tree', 'kernel', 'linear', a Learner, a scikit-learn"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": 3}, "loss must be a name, a Loss object or a subclass"),
        ({"loss": int}, "loss must be a name, a Loss object or a subclass"),
        ({"learner": 3}, A_LEARNER),
        ({"learner": object()}, A_LEARNER),
        ({"learner": Ridge}, r"learner=Ridge is a class; write Ridge\(\)\."),
        ({"learner": LogisticRegression()}, r"learner=LogisticRegression\(\) is a classifier, but"),
    ],
)
def test_losses_and_learners_of_a_wrong_type(parameters, message):
    refused(InvalidType, message, regressor(**parameters).fit, X, Y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_jobs": 0}, "n_jobs == 0 has no meaning"),
        *(
            ({name: value}, f"The '{name}' parameter .* must fit into 64 bits")
            for name in ("max_depth", "learning_rate")
            for value in (2**63, -(10**400))
        ),
        ({"monotonic_cst": {0: 10**400}}, "monotonic_cst has 1000.*for column 0"),
        ({"early_stopping": 50}, r"Got 50 instead\. n_iter_no_change is the n"),
        ({"cv_folds": TimeSeriesSplit(4)}, "'cv_folds' .*Pass a splitter as validation"),
        *(
            ({"loss": "quantile", "quantile": levels}, "quantile levels must")
            for levels in (0, 1, -0.5, [0.1, 1.0], [], [0.5, 0.5])
        ),
        *(
            ({"loss": "quantile", "quantile": levels}, "quantile must be a number between 0 and 1,")
            for levels in ("0.1", [0.1, "0.9"], [[0.1], [0.5, 0.9]], None)
        ),
    ],
)
def test_parameters_that_have_no_meaning(parameters, message):
    refused(ValueError, message, regressor(**parameters).fit, X, Y)


TWO_TARGETS = np.column_stack([Y, Y])
TWO_LEVELS = {"quantile": [0.1, 0.9]}


@pytest.mark.parametrize(
    ("model", "first", "changed", "then", "message"),
    [
        (regressor(), Y, {"n_estimators": 9}, Y, "n_estimators=9 is less than the 10 stages"),
        (regressor(), Y, {}, TWO_TARGETS, "2 target columns; the model was fitted with"),
        (regressor("quantile"), Y, TWO_LEVELS, Y, "set warm_start=False to start a new fit"),
        (classifier(), LABELS, {}, LABELS * 7, "class .*7.*not one of the classes of the training"),
    ],
)
def test_warm_starts_with_something_else(model, first, changed, then, message):
    model.set_params(warm_start=True).fit(X, first)
    refused(ValueError, message, model.set_params(**{"n_estimators": 11} | changed).fit, X, then)


# Validation data


HELD, SPARSE = {"X_val": X, "y_val": Y}, scipy.sparse.csr_array(X)
UNKNOWN = "^y_val: y contains the class 6, .*not one of the classes of the training rows: 0, 1"


@pytest.mark.parametrize(
    ("model", "y", "given", "message"),
    [
        (regressor(), Y, {"X_val": X}, "only one of X_val and y_val was passed"),
        (regressor(), Y, {"y_val": Y}, "only one of X_val and y_val was passed"),
        (regressor(), Y, {"X_val": (X, Y)}, r"X_val is a tuple \(X, y\); pass X_val=X, y_val=y"),
        (regressor(), Y, {"X_val": [(X, Y), (X, Y)]}, "is a list of validation sets; pass dicts"),
        (regressor(), Y, {"X_val": [X, X], "y_val": [Y, Y]}, "is a list of validation sets; pass"),
        (regressor(), Y, {"sample_weight_val": Y}, "sample_weight_val requires X_val and y_val"),
        (regressor(), Y, {"X_val": X[:, :2], "y_val": Y}, "X_val: .*X has 2 features"),
        (regressor(), Y, {"X_val": X, "y_val": TWO_TARGETS}, "2 target columns; the model was fit"),
        (classifier(), LABELS, {"X_val": X, "y_val": LABELS + 5}, UNKNOWN),
        (regressor("poisson"), Y**2, {"X_val": X, "y_val": np.full(40, -1.0)}, "row 0 has -1"),
        (regressor(), Y, {"X_val": X, "y_val": [np.nan] * 40}, "y_val: Input y contains NaN"),
        (regressor(), Y, HELD | {"sample_weight_val": [-1.0] * 40}, "^sample_weight_val: "),
        (regressor(), Y, HELD | {"sample_weight_val": ["a"] * 40}, "^sample_weight_val: "),
        (regressor(learner="kernel"), Y, HELD | {"X_val": SPARSE}, "X_val: Sparse data was passed"),
    ],
)
def test_validation_data(model, y, given, message):
    refused((InvalidData, InvalidType), message, model.fit, X, y, **given)


# Odd but good


def test_layouts_of_the_input():
    expected = regressor().fit(X, Y).predict(X)
    for same in (
        np.asfortranarray(X),
        np.repeat(X, 2, axis=0)[::2],
        np.repeat(X, 2, axis=1)[:, ::2],
        X[::-1].copy()[::-1],
        X.astype(">f8"),
        pd.DataFrame(X).astype("Float64"),
    ):
        np.testing.assert_array_equal(regressor().fit(same, Y).predict(same), expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.uint16, bool, object])
def test_dtypes_of_the_input_and_the_target(dtype):
    values, y = np.round(np.abs(X) * 2).astype(dtype), LABELS.astype(dtype)
    expected = regressor().fit(values.astype(np.float64), LABELS).predict(values.astype(np.float64))
    model = regressor().fit(values, y)
    np.testing.assert_array_equal(model.predict(values), expected)
    np.testing.assert_array_equal(model.predict(values.astype(np.float64)), expected)
    np.testing.assert_array_equal(model.fit(values, pd.Series(y)).predict(values), expected)


def test_read_only_arrays():
    """They are not changed, and no trees are compiled for them."""
    arrays = X.copy(), Y.copy(), np.arange(1.0, 41)
    for array in arrays:
        array.flags.writeable = False
    copied = [array.copy() for array in arrays]
    regressor().fit(*copied)
    known = list(grow_stages.overloads)
    model = regressor().fit(*arrays)
    assert list(grow_stages.overloads) == known
    assert np.isfinite(model.predict(arrays[0])).all()
    for array, before in zip(arrays, copied, strict=True):
        np.testing.assert_array_equal(array, before)


KINDS = [["no", "yes"], np.array(["no", "yes"], dtype=object), [False, True], [-1, 1], [3.0, 7.0]]


@pytest.mark.parametrize("labels", KINDS, ids=["text", "objects", "bool", "int", "float"])
def test_kinds_of_labels(labels):
    labels = np.asarray(labels)
    expected = classifier().fit(X, LABELS).predict(X)
    model = classifier().fit(X, labels[LABELS])
    assert model.predict(X).dtype == labels.dtype
    np.testing.assert_array_equal(model.predict(X), labels[expected])
    np.testing.assert_array_equal(model.classes_, labels)


@pytest.mark.parametrize("values", [[3, 1, 3, 1], [3.0, 7.0, 7.0, 3.0], [True, False, True, True]])
def test_numbers_of_a_category_dtype_are_classes(values):
    y = pd.Series(values * 5, dtype="category")
    X = np.arange(20.0)[:, None]
    found = BoostingClassifier(n_estimators=1).fit(X, y).classes_
    np.testing.assert_array_equal(found, np.unique(values))
    assert found.dtype == np.asarray(values).dtype


@pytest.mark.parametrize("loss", sorted(regression_losses()))
def test_one_row_and_constant_targets(loss):
    y = 0.25 if loss == "beta" else 3.0
    # Scales of distributions are not zero.
    tolerance = 1e-4 if regression_losses()[loss].has_distribution else 1e-12
    for rows, new in (([[1.0, 2.0]], [[1.0, 2.0], [np.nan, 9.0]]), (X, X)):
        model = regressor(loss).fit(rows, np.full(len(rows), y))
        np.testing.assert_allclose(model.predict(new), y, rtol=tolerance)


@pytest.mark.parametrize("multi_output", ["separate", "shared"])
def test_a_target_fitted_perfectly(multi_output):
    """Residuals become zero, and further stages change nothing."""
    steps = (X[:, :1] > 0).astype(float) * np.array([1.0, 2.0])
    model = regressor(learning_rate=1.0, multi_output=multi_output).fit(X, steps)
    np.testing.assert_allclose(model.predict(X), steps, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("values", [np.zeros((40, 2)), np.full((40, 2), np.nan)])
@pytest.mark.parametrize("estimator", [regressor, classifier])
def test_inputs_without_information(estimator, values):
    model = estimator().fit(values, LABELS)
    raw = model.model_.predict_raw(values)
    np.testing.assert_allclose(
        raw, np.broadcast_to(model.model_.initial_raw, raw.shape), rtol=1e-12
    )
    np.testing.assert_array_equal(model.feature_importances_, 0)


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e150])
def test_targets_of_any_size(scale):
    model = regressor(learning_rate=1.0)
    expected = model.fit(X, Y).predict(X)
    found = model.fit(X, Y * scale).predict(X)
    assert np.isfinite(found).all()
    if scale > 1e-320:  # whose multiples are few
        np.testing.assert_allclose(found / scale, expected, rtol=1e-6)


def test_predictions_are_new_arrays():
    model = classifier().fit(X, LABELS)
    first = model.predict_proba(X)
    first[:] = 0
    assert model.predict_proba(X).any()
    staged = list(model.staged_predict_proba(X))
    assert not np.array_equal(staged[0], staged[-1])


def test_unlimited_leaves_with_light_weights():
    """``max_leaf_nodes=None`` is no limit, also where weights sum to little."""
    parameters = {"max_leaf_nodes": None, "min_samples_leaf": 1e-3, "n_estimators": 1}
    model = regressor(**parameters).fit(X, Y, sample_weight=np.full(40, 0.01))
    assert model.apply(X).max() == 39


def test_balanced_classes_have_weights():
    balanced = classifier(class_weight="balanced").fit(X, LABELS)
    weight = (20 / np.bincount(LABELS))[LABELS]
    by_hand = classifier().fit(X, LABELS, sample_weight=weight)
    np.testing.assert_allclose(balanced.predict_proba(X), by_hand.predict_proba(X), rtol=1e-10)


def test_errors_are_value_or_type_errors():
    for error in (InvalidData, InvalidParameter, IncompatibleParts):
        assert issubclass(error, ValueError)
    assert issubclass(InvalidType, TypeError)


# Scores


ROWS = {
    "regressor": (regressor, Y),
    "several targets": (regressor, X),
    "quantiles": (lambda: regressor("quantile", quantile=[0.1, 0.9]), Y),
    "classifier": (classifier, LABELS),
    "text": (classifier, np.array(["no", "yes"])[LABELS]),
    "kernel": (lambda: SparseKernelClassifier(n_basis=5), LABELS),
}


def damaged(y, value):
    found = y.astype(object if y.dtype.kind == "U" else float)
    found[3] = value
    return found


@pytest.mark.filterwarnings("ignore:.*which the model then predicts from itself")
@pytest.mark.parametrize(("make", "y"), ROWS.values(), ids=ROWS)
def test_scores_name_the_row(make, y):
    model, one = make().fit(X, y), np.ones(40)
    for bad, weight, message in (
        (damaged(y, np.nan), None, r"y contains NaN.* row 3"),
        (y[:30], None, "X and y have inconsistent numbers of rows: 40 and 30"),
        (None, None, "y is None; pass the values of the rows"),
        (y, changed(one, 3, np.nan), "sample_weight contains NaN in row 3; use finite"),
        (y, changed(one, 3, np.inf), "sample_weight contains infinity in row 3; use finite"),
        (y, changed(one, 3, -1), "sample_weight must not be negative; row 3 has -1"),
        (y, one[:30], "one value for each of the 40 rows of X; got 30"),
        (y, X, r"one value for each of the 40 rows of X; got an array of shape \(40, 3\)"),
    ):
        refused(InvalidData, message, model.score, X, bad, weight)
    odd = [1] * 40 if y.dtype.kind == "U" else ["a"] * 40
    refused(InvalidData, r"y contains (text or other objects \()?('a'|1)", model.score, X, odd)
    weight = np.where(np.arange(40) % 3, 1.0, 2.0)
    again = np.repeat(np.arange(40), weight.astype(int))
    assert model.score(X, y, weight) == pytest.approx(model.score(X[again], y[again]))


def test_scores_of_labels_that_are_new():
    assert classifier().fit(X, LABELS).score(X, LABELS + 5) == 0


@pytest.mark.parametrize("dtype", [float, int, bool, object, str])
def test_tables_of_three_dimensions(dtype):
    model, cube = regressor().fit(X, Y), np.zeros((4, 5, 2)).astype(dtype)
    message = r"^X has 3 dimensions, .*pass .*X\.reshape\(len\(X\), -"
    for use in (model.predict, model.apply, model.shap_values):
        refused(InvalidData, message, use, cube)
    for use in (model.fit, model.score, model.calibrate, model.refit_leaves):
        refused(InvalidData, message, use, cube, Y[:4])

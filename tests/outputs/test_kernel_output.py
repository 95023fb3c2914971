"""Any kernel on any labels, Gram matrices, distances, and outputs that span all others."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.gaussian_process.kernels import RBF
from tests.cases import OUTPUTS, ids
from tests.outputs.pairs import gram, spectrum
from tests.refusals import refused

from hilboost.core.errors import InvalidData, InvalidParameter, InvalidType, NotPositive
from hilboost.core.output_space import Choice
from hilboost.kernels import Gaussian, Laplace, Linear
from hilboost.outputs import (
    KernelOutput,
    LabelSets,
    PrecomputedOutput,
    Vectors,
    as_output,
    kernel_output,
)
from hilboost.outputs.distances import spanning_rows, to_labels, to_points

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(30, 3))
NEW = RNG.normal(size=(8, 3))
WORDS = ["".join(RNG.choice(list("abc"), RNG.integers(3, 8))) for _ in range(20)]
NEW_WORDS = ["".join(RNG.choice(list("abcd"), RNG.integers(3, 8))) for _ in range(6)]
PAIR = spectrum([1, 2], False)


def common(A, B):
    return gram(PAIR, A, B)


# Kernels in every form


@pytest.mark.parametrize(
    "kernel",
    [Gaussian(1.3), RBF(1.3), lambda A, B: Gaussian(1.3).block(np.asarray(A), np.asarray(B))],
    ids=["ours", "scikit-learn", "function"],
)
@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_forms_of_a_kernel_are_one_kernel(kernel, tolerance):
    plain = KernelOutput(Gaussian(1.3), tolerance=tolerance).fit(ROWS)
    other = KernelOutput(kernel, tolerance=tolerance).fit(ROWS)
    np.testing.assert_array_equal(other.factor.pivots, plain.factor.pivots)
    np.testing.assert_allclose(other.encode(NEW), plain.encode(NEW), atol=1e-6)
    np.testing.assert_allclose(other.norms(NEW), 1.0)
    raw = plain.encode(NEW)
    np.testing.assert_array_equal(other.decode(raw, "nearest"), plain.decode(raw, "nearest"))


def test_the_scale_of_the_gaussian_is_the_mean_distance():
    squares = ((ROWS[:, None] - ROWS[None]) ** 2).sum(axis=2)[np.triu_indices(30, 1)]
    kernel = as_output("gaussian").fit(ROWS).kernel
    np.testing.assert_allclose(2 * np.square(kernel.length_scale), squares.mean(), rtol=0.05)


def test_kernels_by_name():
    assert repr(as_output("laplace").fit(ROWS).kernel) == repr(Laplace())
    assert repr(as_output(Laplace(2.0)).fit(ROWS).kernel) == repr(Laplace(2.0))
    refused(InvalidParameter, "Did you mean 'gaussian'", as_output, "gausian")
    with pytest.raises(InvalidType, match=r"kernel=Gaussian is a class; write Gaussian\(\)"):
        KernelOutput(Gaussian).fit(ROWS)


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("pairwise", [False, True])
def test_functions_take_labels_of_any_type(kind, pairwise):
    space = KernelOutput(PAIR if pairwise else common, pairwise=pairwise, tolerance=0)
    embedding = space.fit(kind(WORDS))
    codes = embedding.encode(kind(WORDS))
    np.testing.assert_allclose(codes @ codes.T, common(WORDS, WORDS), atol=1e-8)
    # "d" is no letter of the training words, and lies outside their span.
    np.testing.assert_allclose(embedding.norms(kind(NEW_WORDS)), [PAIR(w, w) for w in NEW_WORDS])
    crossed = embedding.encode(kind(NEW_WORDS)) @ codes.T
    np.testing.assert_allclose(crossed, common(NEW_WORDS, WORDS), atol=1e-8)
    found = embedding.decode(codes, "nearest")
    assert [PAIR(w, w) for w in found] == [PAIR(w, w) for w in WORDS]
    assert set(embedding.decode(codes, "cosine", Choice(kind(NEW_WORDS)))) <= set(NEW_WORDS)


def test_norms_of_training_labels_are_computed_once():
    calls = []

    def counted(a, b):
        calls.append(1)
        return PAIR(a, b)

    embedding = KernelOutput(counted, pairwise=True).fit(WORDS)
    embedding.decode(embedding.factor.codes, "nearest")
    before = len(calls)
    embedding.decode(embedding.factor.codes, "cosine")
    assert len(calls) == before


@pytest.mark.parametrize("function", [False, True])
def test_large_numbers_of_labels_are_factored_column_by_column(monkeypatch, function):
    kernel = Gaussian(2.0)
    if function:
        kernel = kernel.block
    whole = KernelOutput(kernel, tolerance=0.01).fit(ROWS)
    monkeypatch.setattr(kernel_output, "_WHOLE_UP_TO", 3)
    columns = KernelOutput(kernel, tolerance=0.01).fit(ROWS)
    np.testing.assert_array_equal(columns.factor.pivots, whole.factor.pivots)
    np.testing.assert_allclose(columns.factor.codes, whole.factor.codes, atol=1e-9)
    assert KernelOutput(kernel, max_rank=4).fit(ROWS).factor.codes.shape == (30, 4)
    with pytest.raises(InvalidData, match="the output kernel contains NaN or infinity in row 0"):
        KernelOutput(lambda A, B: np.full((len(A), len(B)), np.nan)).fit(ROWS)
    with pytest.raises(NotPositive, match="the output kernel is not positive"):
        KernelOutput(lambda A, B: -common(A, B)).fit(WORDS)


def test_labels_in_shapes_come_back_in_shapes():
    images = ROWS[:28].reshape(14, 2, 3)
    for space in (KernelOutput("gaussian"), KernelOutput(Linear()), Vectors()):
        embedding = space.fit(images)
        raw = embedding.encode(images[:5] + 0.1)
        for way in embedding.ways:
            assert embedding.decode(raw, way).shape == (5, 2, 3)
        chosen = embedding.decode(raw, "nearest", Choice(images[3:6]))
        assert chosen.shape == (5, 2, 3)
    numbers = Vectors().fit(ROWS[:, 0])
    assert numbers.decode(numbers.encode(NEW[:, 0]), "exact").shape == (8,)
    np.testing.assert_array_equal(numbers.decode(NEW[:, :1], "exact", Choice([7.0])), np.full(8, 7))


# Refusals


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (
            lambda A, B: 1.0,
            InvalidData,
            r"returned an array of shape \(\) for 20 and 20 labels; it must",
        ),
        (
            lambda A, B: np.ones(len(A)),
            InvalidData,
            r"returned an array of shape \(20,\) for 20 and 20",
        ),
        (
            lambda A, B: np.ones((len(B), 3)),
            InvalidData,
            r"must return shape \(20, 20\). For a function of",
        ),
        (lambda A, B: np.full((len(A), len(B)), np.nan), InvalidData, "NaN or infinity in row 0"),
        (lambda A, B: np.arange(400.0).reshape(20, 20), InvalidData, r"not symmetric: k\(0, 19\)"),
        (lambda A, B: -common(A, B), NotPositive, r"not positive semidefinite \(detected in row"),
    ],
    ids=["number", "vector", "shape", "nan", "asymmetric", "negative"],
)
def test_functions_that_are_no_kernels_are_refused(function, error, message):
    refused(error, f"the output kernel .*{message}", KernelOutput(function).fit, WORDS)


def test_a_function_may_fail_on_new_labels():
    def odd(A, B):
        return np.where([[a == "odd"] for a in A], np.nan, common(A, B))

    embedding = KernelOutput(odd).fit(WORDS)
    with pytest.raises(InvalidData, match="the output kernel contains NaN or infinity in row 1"):
        embedding.encode([WORDS[0], "odd"])
    foreign = KernelOutput(lambda a, b: np.nan if a == b == "new" else PAIR(a, b), True).fit(WORDS)
    raw = foreign.encode([WORDS[0], "new"])
    for use in (foreign.norms, lambda labels: foreign.decode(raw, "nearest", Choice(labels))):
        with pytest.raises(
            InvalidData, match="the output kernel contains NaN or infinity in row 1"
        ):
            use([WORDS[0], "new"])


@pytest.mark.parametrize("answer", ["1.0", np.ones(1), None, 1j, [1.0], np.array("1")], ids=repr)
def test_pairwise_functions_return_numbers(answer):
    def odd(a, b):
        return answer if (a, b) == (WORDS[2], WORDS[5]) else PAIR(a, b)

    message = (
        f"returned .* for row 2, {WORDS[2]!r}, and row 5, {WORDS[5]!r}; with pairwise=True, it"
    )
    with pytest.raises(InvalidData, match=f"the output kernel {message} must return one number"):
        KernelOutput(odd, pairwise=True).fit(WORDS)


def test_pairwise_functions_may_return_any_number():
    for kind in (np.float32, np.bool_, Fraction, Decimal, np.array):
        embedding = KernelOutput(lambda a, b, kind=kind: kind(int(a == b)), True).fit([1, 2])
        np.testing.assert_array_equal(embedding.encode([1, 2, 3]), [[1, 0], [0, 1], [0, 0]])


def test_pairwise_functions_that_fail_name_the_pair():
    space = KernelOutput(lambda a, b: len(set(a) & set(b)), pairwise=True)
    failed = "the output kernel failed for row"
    with pytest.raises(InvalidData, match=f"{failed} 0, 'ab', and row 1, 5: TypeError: .*any two"):
        space.fit(["ab", 5])
    embedding = space.fit(["ab", "bc"])
    with pytest.raises(InvalidData, match=f"{failed} 1, 5, and the training label 'ab': TypeErr"):
        embedding.encode(["ab", 5])
    refused(InvalidData, f"{failed} 1, 5, and row 1, 5: TypeError", embedding.norms, ["ab", 5])


@pytest.mark.parametrize(
    "answer", ["text", [[1.0], [1.0, 2.0]], np.full((20, 20), "1")], ids=lambda a: type(a)
)
def test_functions_return_matrices_of_numbers(answer):
    with pytest.raises(
        InvalidData, match=r"output kernel returned .* matrix of numbers of shape \(20, 20"
    ):
        KernelOutput(lambda A, B: answer).fit(WORDS)


@pytest.mark.parametrize("labels", [set(WORDS), "".join(WORDS), dict.fromkeys(WORDS), 5, [], ()])
@pytest.mark.parametrize("pairwise", [False, True])
def test_labels_of_a_function_are_in_a_list(labels, pairwise):
    space = KernelOutput(PAIR if pairwise else common, pairwise)
    embedding = space.fit(WORDS)
    for use in (space.fit, embedding.encode, embedding.norms):
        refused(InvalidData, r"Y must be a list of labels, one per row|Y is empty", use, labels)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", Gaussian(), RBF()])
def test_pairs_are_for_functions(kernel):
    with pytest.raises(InvalidParameter, match="pairwise=True requires a function of two labels"):
        KernelOutput(kernel, pairwise=True).fit(ROWS)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"tolerance": -0.1}, r"tolerance must lie in \[0, 1\); got -0.1"),
        ({"tolerance": 1.0}, r"tolerance must lie in \[0, 1\); got 1.0"),
        ({"tolerance": np.nan}, r"tolerance must lie in \[0, 1\); got nan"),
        ({"tolerance": "a"}, r"tolerance must lie in \[0, 1\); got 'a'"),
        ({"tolerance": True}, r"tolerance must lie in \[0, 1\); got True"),
        ({"max_rank": 0}, "max_rank must be None or a positive integer; got 0"),
        ({"max_rank": 2.5}, "max_rank must be None or a positive integer; got 2.5"),
        ({"max_rank": True}, "max_rank must be None or a positive integer; got True"),
    ],
)
def test_odd_parameters_are_refused(parameters, message):
    refused(InvalidParameter, message, KernelOutput(**parameters).fit, ROWS)
    refused(InvalidParameter, message, PrecomputedOutput(**parameters).fit, np.eye(3))


def test_rows_of_another_kind_are_refused():
    embedding = KernelOutput("gaussian").fit(ROWS)
    for use in (embedding.encode, embedding.norms):
        refused(
            InvalidData, "Y has 2 numbers per row; the model was fitted with 3", use, NEW[:, :2]
        )
        with pytest.raises(InvalidData, match="Y contains NaN or infinity in row 1"):
            use([[1, 2, 3], [1, np.nan, 3]])
    with pytest.raises(
        InvalidData, match="Complex data not supported: Y must contain real numbers"
    ):
        Vectors().fit(ROWS + 1j)
    with pytest.raises(InvalidParameter, match="has 2 length scales, but X has 3 columns"):
        KernelOutput(Gaussian((1.0, 2.0))).fit(ROWS)


# Gram matrices


GRAM = ROWS @ ROWS.T + 0.1


def test_a_gram_matrix_stands_for_its_outputs():
    embedding = PrecomputedOutput().fit(GRAM)
    codes = embedding.encode_training(GRAM)
    np.testing.assert_allclose(codes @ codes.T, GRAM, atol=1e-9)
    np.testing.assert_allclose(embedding.encode(GRAM), codes, atol=1e-6)
    crossed = NEW @ ROWS.T + 0.1
    np.testing.assert_allclose(embedding.encode(crossed) @ codes.T, crossed, atol=1e-8)
    np.testing.assert_array_equal(embedding.decode(codes, "nearest"), np.arange(30))
    np.testing.assert_allclose(embedding.norms(GRAM), GRAM.diagonal())
    frame = PrecomputedOutput().fit(pd.DataFrame(GRAM))
    np.testing.assert_array_equal(frame.factor.pivots, embedding.factor.pivots)


def test_numbers_of_training_outputs_are_labels_too():
    embedding = PrecomputedOutput().fit(GRAM)
    codes = embedding.encode_training(GRAM)
    for numbers in ([4, 0, 4], np.array([4, 0, 4], dtype=np.uint8)):
        np.testing.assert_array_equal(embedding.encode(numbers), codes[[4, 0, 4]])
        np.testing.assert_array_equal(embedding.norms(numbers), GRAM.diagonal()[[4, 0, 4]])
    for use in (embedding.encode, embedding.norms):
        with pytest.raises(
            InvalidData, match="there is no training output 30; indices must be from 0 to 29"
        ):
            use([3, 30])


def test_candidates_of_a_gram_matrix_are_numbers():
    embedding = PrecomputedOutput().fit(GRAM)
    codes = embedding.encode_training(GRAM)
    among = [7, 3, 11]
    cost = GRAM.diagonal()[among] - 2 * GRAM[:, among]
    expected = np.array(among)[cost.argmin(axis=1)]
    np.testing.assert_array_equal(embedding.decode(codes, "nearest", Choice(among)), expected)
    second = embedding.decode(codes, "nearest", Choice(among, [[1]] * 30))
    np.testing.assert_array_equal(second, np.full(30, 3))
    with pytest.raises(InvalidData, match="candidates is empty; pass at least one label"):
        embedding.decode(codes, "nearest", Choice([]))
    for odd in ([0.5], ["a"], [[1]], [True]):
        with pytest.raises(InvalidData, match="candidates must be indices of training outputs"):
            embedding.decode(codes, "nearest", Choice(odd))
    for odd in (-1, 30):
        with pytest.raises(
            InvalidData, match=f"no training output {odd}; indices must be from 0 to 29"
        ):
            embedding.decode(codes, "nearest", Choice([0, odd]))
    with pytest.raises(InvalidParameter, match="decode='nearst' is not known. Did you mean 'near"):
        embedding.decode(codes, "nearst")


@pytest.mark.parametrize(
    ("matrix", "error", "message"),
    [
        (GRAM[:, :29], InvalidData, r"the Gram matrix Y must be square, \(n, n\); got \(30, 29\)"),
        (GRAM[0], InvalidData, r"the Gram matrix Y must be square, \(n, n\); got \(30, 1\)"),
        (GRAM + np.triu(GRAM), InvalidData, r"the Gram matrix Y is not symmetric: k\(\d+, \d+\)"),
        (GRAM - 9 * np.eye(30), NotPositive, "the Gram matrix Y is not positive semidefinite"),
        (
            np.where(np.eye(30) > 0, np.nan, GRAM),
            InvalidData,
            "Gram matrix Y contains NaN .* in row 0",
        ),
        (
            [["a", "b"], ["b", "a"]],
            InvalidData,
            "the Gram matrix Y must contain rows of .*; row 0 is",
        ),
        (
            [[1.0, 0.0], [0.0]],
            InvalidData,
            "Gram matrix Y must .*; row 1 has length 1 and row 0 has length 2",
        ),
    ],
    ids=["wide", "flat", "asymmetric", "negative", "nan", "text", "ragged"],
)
def test_odd_gram_matrices_are_refused(matrix, error, message):
    refused(error, message, PrecomputedOutput().fit, matrix)


def test_new_outputs_have_no_norms():
    embedding = PrecomputedOutput().fit(GRAM)
    message = r"requires k\(y, y\) of the new outputs"
    for crossed in (NEW @ ROWS.T, RNG.normal(size=(30, 3)) @ ROWS.T):
        refused(InvalidData, message, embedding.norms, crossed)
    with pytest.raises(InvalidData, match="with all 30 training outputs, one column each; got 29"):
        embedding.encode(GRAM[:, 1:])


def test_rows_of_a_gram_matrix_are_taken_with_their_columns():
    rows = np.array([7, 0, 3])
    for labels in (GRAM, GRAM.tolist(), pd.DataFrame(GRAM)):
        taken = PrecomputedOutput().take_rows(labels, rows)
        np.testing.assert_array_equal(taken, GRAM[rows][:, rows])
    with pytest.raises(InvalidData, match="the Gram matrix Y must be square"):
        PrecomputedOutput().take_rows(GRAM[:, 1:], rows)


def test_rows_of_tables_are_taken_by_position():
    frame = pd.DataFrame({"a": [1, 2, 3]}, index=[2, 0, 1])
    assert Vectors().take_rows(frame, np.array([2, 0]))["a"].tolist() == [3, 1]
    table = scipy.sparse.coo_array(np.eye(3))
    np.testing.assert_array_equal(
        LabelSets().take_rows(table, np.array([2, 0])).toarray(), np.eye(3)[[2, 0]]
    )


@pytest.mark.parametrize("tolerance", [0.0, 0.5])
def test_distances_of_training_outputs_are_exact(tolerance):
    Y = np.vstack([ROWS, ROWS[:5] + 1e-3])
    gram = Gaussian(1.0).block(Y, Y)
    embedding = PrecomputedOutput(tolerance=tolerance).fit(gram)
    assert (embedding.gram is None) == (tolerance == 0)
    first, second = RNG.integers(35, size=(2, 50))
    expected = 2 - 2 * gram[first, second]
    np.testing.assert_allclose(to_labels(embedding, first, second), expected, atol=1e-9)
    np.testing.assert_allclose(to_labels(embedding, first, first), 0, atol=1e-9)
    np.testing.assert_allclose(to_labels(embedding, gram, np.arange(35)), 0, atol=1e-9)


MADE = {"function": {"kernel": common}, "pairwise": {"kernel": PAIR, "pairwise": True}}


@pytest.mark.parametrize("form", MADE)
@pytest.mark.parametrize("tolerance", [0.0, 0.3])
def test_a_gram_matrix_with_its_function_is_a_kernel_output(form, tolerance):
    gram = common(WORDS, WORDS)
    space = PrecomputedOutput(labels=WORDS, tolerance=tolerance, **MADE[form])
    embedding = space.fit(gram)
    expected = KernelOutput(tolerance=tolerance, **MADE[form]).fit(WORDS)
    codes = embedding.encode_training(gram)
    np.testing.assert_array_equal(codes, expected.factor.codes)
    np.testing.assert_array_equal(embedding.encode(NEW_WORDS), expected.encode(NEW_WORDS))
    np.testing.assert_array_equal(embedding.norms(NEW_WORDS), [PAIR(w, w) for w in NEW_WORDS])
    assert embedding.decode(codes, "nearest") == expected.decode(codes, "nearest")
    among = Choice(NEW_WORDS)
    assert embedding.decode(codes, "cosine", among) == expected.decode(codes, "cosine", among)
    others = WORDS[:6]
    distances = [
        PAIR(a, a) - 2 * PAIR(a, b) + PAIR(b, b) for a, b in zip(NEW_WORDS, others, strict=True)
    ]
    np.testing.assert_allclose(to_labels(embedding, NEW_WORDS, others), distances)
    assert "labels" not in repr(space)


def test_a_gram_matrix_may_have_a_kernel_of_rows():
    gram = Gaussian(1.3).block(ROWS, ROWS)
    for kernel in (Gaussian(1.3), RBF(1.3)):
        embedding = PrecomputedOutput(kernel, ROWS).fit(gram)
        np.testing.assert_allclose(
            embedding.encode(NEW), KernelOutput(Gaussian(1.3), tolerance=0).fit(ROWS).encode(NEW)
        )


def test_functions_that_do_not_go_with_the_matrix_are_refused():
    gram = common(WORDS, WORDS)
    with pytest.raises(
        InvalidData, match=r"kernel returns k\(\d+, \d+\) = .* the Gram matrix Y has"
    ):
        PrecomputedOutput(lambda A, B: 2 * common(A, B), WORDS).fit(gram)
    with pytest.raises(
        InvalidData, match="the function that produced the matrix, and the labels in"
    ):
        PrecomputedOutput(common, [*WORDS[1:], WORDS[0]]).fit(gram)
    with pytest.raises(InvalidParameter, match="PrecomputedOutput has kernel but no labels; pass"):
        PrecomputedOutput(common).fit(gram)
    with pytest.raises(InvalidParameter, match="PrecomputedOutput has labels but no kernel; pass"):
        PrecomputedOutput(labels=WORDS).fit(gram)
    with pytest.raises(InvalidParameter, match="labels contains 19 training labels, but .* has 20"):
        PrecomputedOutput(common, WORDS[1:]).fit(gram)
    with pytest.raises(InvalidData, match="labels must be a list of training labels, one per row"):
        PrecomputedOutput(common, set(WORDS)).fit(gram)
    odd = [*ROWS[:3].tolist(), ["a", "b", "c"]]
    with pytest.raises(InvalidData, match="labels must contain rows of numbers; row 3 is"):
        PrecomputedOutput(Linear(), odd).fit(np.eye(4))


# Distances


def distance(pair, a, b):
    return pair(a, a) - 2 * pair(a, b) + pair(b, b)


@pytest.mark.parametrize("case", OUTPUTS, ids=ids(OUTPUTS))
def test_distances_are_those_of_the_kernel(case):
    labels, others = (case.draw(np.random.default_rng(seed), 12) for seed in (0, 1))
    embedding = case.make().fit(labels)
    for y in (labels, others):
        # ``labels`` lie in the span of the training outputs, as decoded ones do.
        expected = [distance(case.pair, a, b) for a, b in zip(y, labels, strict=True)]
        found = to_labels(embedding, y, labels)
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(
            to_points(embedding, y, embedding.encode(labels)), expected, rtol=1e-7, atol=1e-7
        )


@pytest.mark.parametrize("tolerance", [0.0, 0.3])
@pytest.mark.parametrize("kind", ["rows", "function", "pairwise"])
def test_labels_out_of_the_span_are_as_far_as_the_kernel_says(tolerance, kind):
    kernel = Gaussian(0.5)
    made = {
        "rows": (kernel, False),
        "function": (lambda A, B: kernel.block(np.array(A), np.array(B)), False),
        "pairwise": (lambda a, b: kernel.block(a[None], b[None])[0, 0], True),
    }
    function, pairwise = made[kind]
    embedding = KernelOutput(function, pairwise, tolerance).fit(ROWS)
    many, others = RNG.normal(size=(70, 3)), RNG.normal(size=(70, 3))
    expected = 2 - 2 * np.exp(-((many - others) ** 2).sum(axis=1) / 2 / 0.5**2)
    np.testing.assert_allclose(to_labels(embedding, many, others), expected, atol=1e-9)
    np.testing.assert_allclose(to_labels(embedding, many, many), 0, atol=1e-9)
    rows, weights = RNG.integers(30, size=5), RNG.normal(size=(70, 5))
    points = weights @ embedding.encode(ROWS[rows])
    if tolerance == 0:
        K = kernel.block(np.vstack([ROWS[rows], many]), np.vstack([ROWS[rows], many]))
        quadratic = np.einsum("ij,jk,ik->i", weights, K[:5, :5], weights)
        mixed = np.einsum("ij,ij->i", weights, K[5:, :5])
        found = to_points(embedding, many, points)
        np.testing.assert_allclose(found, 1 - 2 * mixed + quadratic, atol=1e-8)


def test_distances_do_not_cancel_far_from_zero():
    embedding = Vectors().fit(ROWS + 1e9)
    found = to_points(embedding, ROWS[:8] + 1e9, NEW + 1e9)
    np.testing.assert_allclose(found, ((ROWS[:8] - NEW) ** 2).sum(axis=1), rtol=1e-5)


# Spanning outputs


@pytest.mark.parametrize("case", OUTPUTS, ids=ids(OUTPUTS))
def test_some_outputs_span_all(case):
    labels = case.draw(np.random.default_rng(2), 15)
    embedding = case.make().fit(labels)
    codes = embedding.encode_training(labels)
    rows = spanning_rows(embedding, codes)
    assert len(np.unique(rows)) == len(rows) == np.linalg.matrix_rank(codes, tol=1e-8)
    weights = np.linalg.lstsq(codes[rows].T, codes.T, rcond=None)[0]
    np.testing.assert_allclose(weights.T @ codes[rows], codes, atol=1e-6)


def test_nothing_spans_nothing():
    codes = np.zeros((5, 2))
    assert len(spanning_rows(Vectors().fit(codes), codes)) == 0
    assert len(spanning_rows(LabelSets().fit([{1}]), np.zeros((1, 1)))) == 0

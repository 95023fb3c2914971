"""The space of graphs: its kernel, its invariances, and graphs that it refuses."""

import sys
from itertools import combinations, compress, product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.outputs.pairs import gram, weisfeiler_lehman
from tests.reloaded import reloaded

from hilboost import OutputKernelBoostingRegressor, OutputKernelForestRegressor
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.output_space import Choice
from hilboost.outputs import Graphs

TRIANGLE = (["C"] * 3, [(0, 1), (1, 2), (2, 0)])
PATH = (["C"] * 3, [(0, 1), (1, 2)])


@st.composite
def graphs(draw):
    size = draw(st.integers(0, 6))
    labels = draw(st.lists(st.sampled_from(["C", "N", 8]), min_size=size, max_size=size))
    pairs = [(i, j) for i in range(size) for j in range(i)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return labels, edges


@given(
    training=st.lists(graphs(), min_size=1, max_size=5),
    new=st.lists(graphs(), min_size=1, max_size=3),
    depth=st.integers(0, 4),
    normalize=st.booleans(),
)
def test_products_of_points_are_the_kernel(training, new, depth, normalize):
    training = [TRIANGLE, *training]
    embedding = Graphs(depth, normalize).fit(training)
    pair = weisfeiler_lehman(depth, normalize)
    points = embedding.encode(training)
    for some in (training, new):
        products = embedding.encode(some) @ points.T
        np.testing.assert_allclose(products, gram(pair, some, training), atol=1e-12)
        np.testing.assert_allclose(embedding.norms(some), [pair(a, a) for a in some], atol=1e-12)


@given(graph=graphs(), seed=st.integers(0, 99))
def test_the_order_of_nodes_and_edges_has_no_effect(graph, seed):
    rng = np.random.default_rng(seed)
    labels, edges = graph
    new = rng.permutation(len(labels))  # node i becomes node new[i]
    moved = [labels[i] for i in np.argsort(new)]
    turned = [tuple(int(new[end]) for end in rng.permutation(edge)) for edge in edges]
    other = (moved, [turned[i] for i in rng.permutation(len(turned))])
    embedding = Graphs(2).fit([TRIANGLE, (["N", 8, "C"], [(0, 2), (1, 2)])])
    np.testing.assert_array_equal(embedding.encode([graph]), embedding.encode([other]))
    np.testing.assert_array_equal(embedding.norms([graph]), embedding.norms([other]))


@given(training=st.lists(graphs(), min_size=1, max_size=5), seed=st.integers(0, 99))
def test_the_order_of_training_rows_has_no_effect(training, seed):
    training = [TRIANGLE, *training]
    order = np.random.default_rng(seed).permutation(len(training))
    one, other = Graphs().fit(training), Graphs().fit([training[i] for i in order])
    np.testing.assert_array_equal(one.encode(training), other.encode(training))


def test_neighborhoods_that_occur_together_share_a_coordinate():
    embedding = Graphs(3, normalize=False).fit([TRIANGLE, PATH])
    assert embedding.refinement.n_features == 9
    assert embedding.encode([PATH]).shape == (1, 5)
    distance = ((np.diff(embedding.encode([TRIANGLE, PATH]), axis=0)) ** 2).sum()
    pair = weisfeiler_lehman(3, False)
    expected = pair(TRIANGLE, TRIANGLE) + pair(PATH, PATH) - 2 * pair(TRIANGLE, PATH)
    assert distance == pytest.approx(expected)


def test_edges_may_be_arrays_and_sets():
    expected = [(("C", "C", "C"), ((0, 1), (0, 2), (1, 2)))]
    embedding = Graphs().fit([TRIANGLE])
    for edges in (np.array([[1, 0], [2, 1], [0, 2]]), {(0, 1), (1, 2), (0, 2)}):
        graph = (np.array(["C", "C", "C"]), edges)
        assert Graphs().fit([graph]).training == expected
        assert embedding.decode(np.zeros((1, 1)), "nearest", Choice([graph])) == expected


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("CC", r"row 1 of Y is 'CC' \(str\); each output must be a graph: a pair of a list"),
        (("CO", [(0, 1)]), "row 1 of Y is .*; each output must be a graph"),
        ((["C"], [], []), "row 1 of Y is .*; each output must be a graph"),
        ((["C", "O"], None), r"the edges of row 1 of Y are None \(NoneType\); they must be"),
        ((["C", "O"], [0, 1]), "an edge of row 1 of Y is 0; each edge must be a pair of node ind"),
        ((["C", "O"], [(0, 1, 2)]), r"an edge of row 1 of Y is \(0, 1, 2\)"),
        ((["C", "O"], [(0, 1.0)]), r"an edge of row 1 of Y is \(0, 1.0\)"),
        ((["C", "O"], [("C", "O")]), r"an edge of row 1 of Y is \('C', 'O'\)"),
        ((["C", "O"], [(0, 2)]), r"the edge \(0, 2\) of row 1 of Y has an end outside its 2 nodes"),
        ((["C", "O"], [(-1, 0)]), r"the edge \(-1, 0\) of row 1 of Y has an end outside"),
        ((["C", "O"], [(1, 1)]), r"the edge \(1, 1\) of row 1 of Y joins a node to itself"),
        ((["C", "O"], [(0, 1), (1, 0)]), r"the edge \(0, 1\) occurs twice in row 1 of Y"),
        (([["C"], "O"], []), r"row 1 of Y contains the node label \['C'\] \(list\); node labels"),
        (([np.nan], []), r"row 1 of Y contains the node label nan \(float\)"),
    ],
)
def test_odd_graphs_are_refused(label, message):
    for use in (Graphs().fit, Graphs().fit([PATH]).encode):
        with pytest.raises(InvalidData, match=message):
            use([PATH, label])


def test_graphs_without_nodes_are_legal_but_not_alone():
    empty = ([], [])
    embedding = Graphs().fit([empty, PATH])
    np.testing.assert_array_equal(embedding.norms([empty, PATH]), [0, 1])
    np.testing.assert_array_equal(embedding.encode([empty]), 0 * embedding.encode([PATH]))
    with pytest.raises(InvalidData, match="no graph of Y has nodes; at least one must have some"):
        Graphs().fit([empty, empty])


@pytest.mark.parametrize("n_iterations", [-1, 1.0, None, True, "3", 101])
def test_odd_numbers_of_iterations_are_refused(n_iterations):
    with pytest.raises(InvalidParameter, match="n_iterations must be an integer from 0 to 100"):
        Graphs(n_iterations).fit([PATH])


def networkx_graph(nodes, edges, directed=False, multiple=False):
    class Nodes(dict):
        def __call__(self, data):
            assert data
            return self.items()

    class Graph:
        def __init__(self):
            self.nodes, self.edges = Nodes(nodes), edges

        def is_directed(self):
            return directed

        def is_multigraph(self):
            return multiple

    return Graph


def test_graphs_of_networkx_are_converted(monkeypatch):
    made = networkx_graph({"x": {"label": "C"}, 7: {"label": "O"}, "z": {}}, [(7, "x"), ("z", 7)])
    monkeypatch.setitem(sys.modules, "networkx", SimpleNamespace(Graph=made))
    assert Graphs().fit([made()]).training == [(("C", "O", None), ((0, 1), (1, 2)))]


@pytest.mark.parametrize("kind", [{"directed": True}, {"multiple": True}])
def test_directed_graphs_and_multigraphs_are_refused(kind, monkeypatch):
    made = networkx_graph({0: {}, 1: {}}, [(0, 1)], **kind)
    monkeypatch.setitem(sys.modules, "networkx", SimpleNamespace(Graph=made))
    with pytest.raises(InvalidData, match="row 0 of Y is a networkx Graph; convert it to an undir"):
        Graphs().fit([made()])


def test_networkx_itself():
    networkx = pytest.importorskip("networkx")
    graph = networkx.path_graph(3)
    networkx.set_node_attributes(graph, {0: "C", 1: "C", 2: "C"}, "label")
    np.testing.assert_array_equal(*map(Graphs().fit([PATH, TRIANGLE]).encode, ([graph], [PATH])))
    for kind in (networkx.DiGraph, networkx.MultiGraph):
        with pytest.raises(InvalidData, match=f"is a networkx {kind.__name__}"):
            Graphs().fit([kind(graph)])


def test_models_predict_graphs():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, 80), rng.integers(3, 6, 80)]).astype(float)
    rings = [[(i, (i + 1) % int(n)) for i in range(int(n) - int(not ring))] for ring, n in X]
    labels = [(["C"] * int(n), edges) for (_, n), edges in zip(X, rings, strict=True)]
    space = Graphs(normalize=False)  # normalized rings of all sizes have one point
    model = OutputKernelBoostingRegressor(space, random_state=0).fit(X[:60], labels[:60])
    embedding = model.output_
    assert model.preimage_loss(X[60:], labels[60:]) < 1e-9
    found = model.predict([[1, 4]], candidates=[TRIANGLE, (["C"] * 4, [(0, 1), (1, 2), (2, 3)])])
    assert found == [(("C",) * 3, ((0, 1), (0, 2), (1, 2)))]
    loaded = reloaded(model)
    assert loaded.output == space
    assert loaded.output_.refinement == embedding.refinement
    assert loaded.output_.training == embedding.training
    np.testing.assert_array_equal(loaded.output_.encode(labels), embedding.encode(labels))
    assert loaded.predict(X) == model.predict(X)
    facts = model.report_facts(X[60:], labels[60:])
    assert facts["structured"]["gallery"]["kind"] == "text"
    exactly_right = {one["name"]: one["value"] for one in facts["structured"]["scores"]}
    assert exactly_right["exactly right"] == 1.0


def all_graphs(most_nodes, labels):
    found = []
    for n in range(most_nodes + 1):
        pairs = list(combinations(range(n), 2))
        for nodes in product(labels, repeat=n):
            for chosen in product([False, True], repeat=len(pairs)):
                found.append((nodes, tuple(compress(pairs, chosen))))
    return found


EVERY = all_graphs(4, ("C", "N"))


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("depth", [1, 3])
def test_edits_lead_to_the_best_of_all_graphs_or_nearly(depth, normalize):
    rng = np.random.default_rng(depth)
    training = [EVERY[i] for i in rng.choice(len(EVERY), 25, replace=False)]
    training.append((("C", "N", "C", "N"), ((0, 1), (1, 2), (2, 3))))
    embedding = Graphs(depth, normalize).fit(training)
    codes, norms = embedding.encode(EVERY), embedding.norms(EVERY)
    mixed = [rng.choice(len(training), 3) for _ in range(15)]
    raw = np.array([embedding.encode([training[i] for i in rows]).mean(axis=0) for rows in mixed])

    def cost(graphs):
        points = embedding.encode(graphs)
        return 0.5 * embedding.norms(graphs) - (points * raw).sum(axis=1)

    found = cost(embedding.decode(raw, "edits"))
    best = (0.5 * norms - raw @ codes.T).min(axis=1)
    assert (found >= best - 1e-9).all()
    assert (found <= cost(embedding.decode(raw, "nearest")) + 1e-9).all()
    assert (found <= best + 1e-9).mean() >= 0.8


def test_edits_find_a_graph_that_was_never_seen():
    chains = [(["C"] * n + ["N"], [(i, i + 1) for i in range(n)]) for n in (2, 3, 5)]
    embedding = Graphs(1, normalize=False).fit(chains)
    unseen = (["C"] * 4 + ["N"], [(i, i + 1) for i in range(4)])
    raw = embedding.encode([unseen])
    (found,) = embedding.decode(raw, "edits")
    assert embedding.metrics()["accuracy"].agreement([unseen], [found]) == [1.0]
    assert embedding.decode(raw, "nearest") != [found]


def test_edits_change_one_edge_or_one_node():
    embedding = Graphs().fit([(["C", "N", "C"], [(0, 1)])])
    search = embedding._search
    found = list(search.edits((("C", "N"), ((0, 1),))))
    assert len(found) == len(set(found)) == 1 + 2 + 2 + 2 * 3
    assert (("C", "N"), ()) in found
    assert (("N", "N"), ((0, 1),)) in found
    assert (("N",), ()) in found
    assert (("C", "N", "C"), ((0, 1), (1, 2))) in found
    largest = (("C", "N", "C"), ((0, 1), (1, 2)))
    assert max(len(nodes) for nodes, _ in search.edits(largest)) == 3
    assert (("C", "C"), ()) in list(search.edits(largest))


def test_the_accuracy_is_that_of_the_weisfeiler_lehman_test():
    embedding = Graphs().fit([TRIANGLE])
    ring = (["C"] * 6, [(i, (i + 1) % 6) for i in range(6)])
    triangles = (["C"] * 6, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)])
    turned = (["C"] * 3, [(0, 1), (0, 2)])
    agreement = embedding.metrics()["accuracy"].agreement
    found = agreement([TRIANGLE, PATH, ring, ring], [PATH, turned, triangles, TRIANGLE])
    assert found.tolist() == [0, 1, 1, 0]


def test_a_model_decodes_by_edits():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(40, 1))
    labels = [TRIANGLE if x < 0.5 else PATH for x in X[:, 0]]
    model = OutputKernelForestRegressor("graph", n_estimators=3, decode="edits", random_state=0)
    model.fit(X, labels)
    assert model.output_.metrics()["accuracy"].agreement(labels, model.predict(X)).mean() > 0.9

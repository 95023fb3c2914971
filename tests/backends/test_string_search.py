"""The search for strings against trying every string, and its automaton against its definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import search as twin

from hilboost.backends.strings.automaton import Criterion, SearchLimits, buffers
from hilboost.backends.strings.search import search_strings
from hilboost.outputs.string_preimages import build_automaton

N_GRAMS = [(1, 1), (2, 2), (3, 3), (1, 2), (1, 3), (2, 3)]


@st.composite
def problems(draw):
    n_tokens = draw(st.integers(1, 3))
    first, last = draw(st.sampled_from(N_GRAMS))
    token = st.integers(0, n_tokens - 1)
    texts = draw(st.lists(st.lists(token, min_size=last, max_size=6), min_size=1, max_size=4))
    lengths = range(first, last + 1)
    grams = sorted({gram for text in texts for gram in twin.count(text, lengths)})
    low = draw(st.integers(0, 3))
    high = draw(st.integers(max(low, first), 5))
    number = st.one_of(st.integers(-2, 3).map(float), st.floats(-3, 3))
    point = draw(st.lists(number, min_size=len(grams), max_size=len(grams)))
    columns = {gram: j for j, gram in enumerate(grams)}
    return columns, n_tokens, lengths, range(low, high + 1), np.array(point)


def run(columns, n_tokens, n_grams, among, point, cosine, offset=0.0, max_nodes=10**6, least=-1e9):
    automaton = build_automaton(columns, n_tokens, n_grams, among)
    memory = buffers(automaton, len(columns), n_tokens)
    start = np.zeros((1, among.stop - 1), dtype=np.int64)
    lengths = np.array([m for m in among if m >= n_grams.start], dtype=np.int64)
    limits = SearchLimits(start, np.array([among.start]), lengths, least, max_nodes)
    complete = search_strings(automaton, point, Criterion(cosine, offset), limits, memory)
    string = tuple(memory.found[: int(memory.best[1])].tolist())
    return complete, string, memory.best[0]


@settings(max_examples=80, deadline=None)
@given(problem=problems(), cosine=st.booleans(), offset=st.sampled_from([0.0, 0.5]))
def test_no_string_is_better(problem, cosine, offset):
    columns, _, n_grams, among, point = problem
    complete, string, value = run(*problem, cosine, offset)
    assert complete
    assert len(string) in among
    exact = twin.value(string, columns, n_grams, point, cosine, offset)
    assert value == pytest.approx(exact, rel=1e-9, abs=1e-9)
    least, _ = twin.search_strings(*problem, cosine, offset)
    assert exact == pytest.approx(least, rel=1e-9, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(problem=problems(), cosine=st.booleans())
def test_an_interrupted_search_returns_a_string_no_worse_than_its_start(problem, cosine):
    columns, _, n_grams, among, point = problem
    _, string, value = run(*problem, cosine, max_nodes=1)
    start = twin.value((0,) * among.start, columns, n_grams, point, cosine, 0.0)
    assert value <= start + 1e-12
    exact = twin.value(string, columns, n_grams, point, cosine, 0.0)
    assert value == pytest.approx(exact, rel=1e-9, abs=1e-9)


def test_a_search_stops_at_its_limit():
    columns = {gram: j for j, gram in enumerate(np.ndindex(3, 3))}
    point = np.random.default_rng(0).normal(size=9)
    problem = columns, 3, range(2, 3), range(13), point
    whole = run(*problem, True)
    assert whole[0]
    stopped = run(*problem, True, max_nodes=1)
    assert not stopped[0]
    assert stopped[2] >= whole[2]


def test_a_start_at_the_lower_bound_is_kept():
    columns = {(0, 0): 0, (0, 1): 1}
    point = np.array([1.0, 0.0])
    complete, string, value = run(
        columns, 2, range(2, 3), range(2, 6), point, False, max_nodes=0, least=-0.5
    )
    assert complete
    assert string == (0, 0)
    assert value == -0.5


@settings(max_examples=60, deadline=None)
@given(problem=problems())
def test_states_are_the_longest_suffixes(problem):
    columns, n_tokens, n_grams, among, _ = problem
    automaton = build_automaton(columns, n_tokens, n_grams, among)
    prefixes = [()]
    for s in range(1, len(automaton.token)):
        parent = np.searchsorted(automaton.first_child, s, side="right") - 1
        prefixes.append((*prefixes[parent], automaton.token[s]))
    assert len(set(prefixes)) == len(prefixes)
    assert set(prefixes) == {gram[:k] for gram in columns for k in range(len(gram) + 1)}
    for s, prefix in enumerate(prefixes):
        assert automaton.depth[s] == len(prefix)
        assert automaton.column[s] == columns.get(prefix, -1)
        ends = [prefix[k:] for k in range(len(prefix))]
        assert automaton.known[s] == sum(end in columns for end in ends)
        if s:
            assert prefixes[automaton.fail[s]] == twin.longest_suffix(prefixes, prefix[1:])
    for depth, n in enumerate(automaton.n_within):
        assert n == sum(len(prefix) <= depth for prefix in prefixes)
    ending = [sum(n <= position for n in n_grams) for position in range(among.stop)]
    assert automaton.ending.tolist() == ending

"""What every output space promises."""

import pytest
from tests.cases import OUTPUTS, ids

import hilboost.outputs
from hilboost.core.discovery import classes_in
from hilboost.core.errors import InvalidData, InvalidParameter
from hilboost.core.output_space import Choice, OutputSpace
from hilboost.outputs import Candidates, PrecomputedOutput
from hilboost.testing import OutputSpaceContract
from hilboost.testing.contract import ensure_same_labels

all_outputs = pytest.mark.parametrize("case", OUTPUTS, ids=ids(OUTPUTS))


class OfCase(OutputSpaceContract):
    def __init__(self, case):
        self.case = case
        self.exact, self.distinct = case.exact, case.distinct
        self.ordered = case.id == "kernel"  # another pivot: the same points, other coordinates

    def make(self):
        return self.case.make()

    def labels(self, rng, n):
        return self.case.draw(rng, n)

    def pair(self, a, b):
        return self.case.pair(a, b)

    def settled(self, labels):
        return self.case.settled(labels)


@all_outputs
@pytest.mark.parametrize("check", OutputSpaceContract.checks())
def test_contract(case, check):
    getattr(OfCase(case), check)()


def test_every_public_space_has_a_row():
    public = {
        value
        for name in hilboost.outputs.__all__
        if isinstance(value := getattr(hilboost.outputs, name), type)
        and issubclass(value, OutputSpace)
    }
    found = set(classes_in("hilboost.outputs", OutputSpace))
    # The labels of a precomputed matrix are rows of it; its tests are apart.
    assert public <= found == {type(case.make()) for case in OUTPUTS} | {PrecomputedOutput}


@all_outputs
def test_the_nearest_known_way_is_suggested(case):
    embedding, labels, raw = OfCase(case).fitted()
    for choice in (None, Choice(labels)):
        with pytest.raises(InvalidParameter, match="'nearst' is not known. Did you mean 'near"):
            embedding.decode(raw, "nearst", choice)


@all_outputs
def test_training_labels_are_encoded_once_for_all_decodings(case, monkeypatch):
    embedding, _, raw = OfCase(case).fitted()
    first = embedding.decode(raw, "nearest")
    made = []
    monkeypatch.setattr(Candidates, "__init__", lambda *_: made.append(1))
    ensure_same_labels(embedding.decode(raw, "nearest"), first, "Another decoding.")
    assert not made


@all_outputs
def test_odd_candidates_are_called_so(case):
    embedding, labels, raw = OfCase(case).fitted()
    mixed = [*list(labels)[:3], None, *list(labels)[4:]]
    with pytest.raises(InvalidData, match=r"candidates .*row 3|row 3 of candidates"):
        embedding.decode(raw, embedding.ways[0], Choice(mixed))

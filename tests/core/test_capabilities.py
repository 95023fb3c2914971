"""Records of what learners support."""

from typing import Generic, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilboost.core.capabilities import DECLARED, FLAGS, Capabilities, of_any
from hilboost.core.errors import InvalidParameter
from hilboost.core.learner import Learner


def records():
    return st.builds(Capabilities, **dict.fromkeys(FLAGS, st.booleans()))


@given(st.lists(records(), min_size=1, max_size=3))
def test_a_learner_of_several_supports_what_all_of_them_support(parts):
    common = of_any(parts)
    for name in set(FLAGS) - {"has_state", "keeps_gradients", "encodes_categories"}:
        assert (
            not getattr(common, name)
            or all(getattr(part, name) for part in parts)
            or (name == "works_on_folds" and common.takes_samples)
        )
    assert common.continues == all(part.continues for part in parts)
    assert common.in_checkpoints == all(part.in_checkpoints for part in parts)
    assert common.has_state
    assert common.keeps_gradients


def test_penalties_and_base_models_imply_other_fields():
    assert Capabilities(penalizes=True).fits_curvature
    assert not Capabilities(penalizes=True).continues
    assert Capabilities(penalizes=True, has_state=True).continues
    assert Capabilities(resumable=True).in_checkpoints


@pytest.mark.parametrize("name", DECLARED)
def test_a_declaration_outside_of_the_record_is_an_error(name):
    with pytest.raises(InvalidParameter, match=rf"declares capabilities = Capabilities\({name}="):
        type("Own", (Learner,), {name: True})


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("among_workers", "prepare_among_workers="),
        ("choose_penalty_by", "for_members"),
        ("draws", "generator"),
        ("for_member", "for_members"),
        ("for_trials", "MixedLearner"),
        ("in_series", "fit_stages"),
        ("other_stage_added", "stage_added"),
        ("rounded", "already rounded"),
        ("seeing_categories", "for_table"),
        ("splitting", r"Capabilities\(splits=...\) and define for_table"),
        ("takes_series", "fit_stages"),
        ("tuned_briefly", "parameter"),
        ("with_parts", "MixedLearner"),
    ],
)
def test_members_of_earlier_versions_are_not_ignored(name, instead):
    with pytest.raises(InvalidParameter, match=f"Own defines {name}, which .*; .*{instead}"):
        type("Own", (Learner,), {name: lambda self: None})


def test_a_learner_may_have_names_unless_it_combines_others():
    type("Own", (Learner,), {"names": ("a", "b")})
    with pytest.raises(InvalidParameter, match="Own defines names"):
        type("Own", (Learner,), {"names": ("a", "b"), "parts": property(lambda self: ())})


def test_learners_can_be_generic():
    kind = TypeVar("kind")

    class Own(Learner, Generic[kind]):
        pass

    assert Own[int] is not Own

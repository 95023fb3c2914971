"""A naive reader of XGBoost's JSON model files: the raw outputs of their trees, row by row."""

import json

import numpy as np


def raw_outputs(text, rows):
    """(n, n_groups), in float32 as XGBoost does it; the base score must add nothing."""
    learner = json.loads(text)["learner"]
    parameters, objective = learner["learner_model_param"], learner["objective"]["name"]
    assert parameters["base_score"] == neutral_score(objective)
    n_groups = max(int(parameters["num_class"]), int(parameters["num_target"]))
    model = learner["gradient_booster"]["model"]
    trees, groups = model["trees"], model["tree_info"]
    assert len(trees) == len(groups) == int(model["gbtree_model_param"]["num_trees"])
    assert model["iteration_indptr"][0] == 0
    assert model["iteration_indptr"][-1] == len(trees)
    raw = np.zeros((len(rows), n_groups), dtype=np.float32)
    for number, (tree, group) in enumerate(zip(trees, groups, strict=True)):
        check_tree(tree, number, rows.shape[1])
        for i, row in enumerate(rows.astype(np.float32)):
            raw[i, group] += np.float32(leaf_value(tree, row))
    return raw


def neutral_score(objective):
    if objective == "binary:logistic":
        return "5E-1"
    return "1E0" if objective in ("count:poisson", "reg:gamma", "reg:tweedie") else "0E0"


def check_tree(tree, number, n_columns):
    """What the format asks of a tree."""
    n = int(tree["tree_param"]["num_nodes"])
    assert tree["id"] == number
    assert tree["tree_param"]["num_feature"] == str(n_columns)
    for name in ("parents", "split_indices", "default_left", "split_type", "loss_changes"):
        assert len(tree[name]) == n
    assert tree["parents"][0] == 2**31 - 1
    for node in range(n):
        left, right = tree["left_children"][node], tree["right_children"][node]
        assert (left == -1) == (right == -1)
        if left != -1:
            assert tree["parents"][left] == tree["parents"][right] == node
        else:
            assert tree["base_weights"][node] == tree["split_conditions"][node]


def leaf_value(tree, row):
    node = 0
    while tree["left_children"][node] != -1:
        value = row[tree["split_indices"][node]]
        if np.isnan(value):
            left = tree["default_left"][node] == 1
        else:
            left = value < np.float32(tree["split_conditions"][node])
        node = tree["left_children" if left else "right_children"][node]
    return tree["split_conditions"][node]

"""Missing values are refused for learner objects that do not declare to support them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.tree import DecisionTreeRegressor

from hilboost import BoostingClassifier, BoostingRegressor, OutputKernelBoostingRegressor
from hilboost.core.base_model import BaseModel, Term
from hilboost.core.capabilities import Capabilities
from hilboost.core.errors import InvalidData
from hilboost.core.fitted_term import FittedTerm
from hilboost.core.learner import Learner

X = np.random.default_rng(0).normal(size=(60, 3))
Y = X[:, 0] + X[:, 1]
ODD = X.copy()
ODD[[5, 9], [2, 0]] = np.nan
FEW = {"n_estimators": 3, "early_stopping": False, "random_state": 0}


class Slopes(BaseModel):
    def __init__(self, slopes):
        self.slopes = slopes  # (d, r)

    def predict_raw(self, X):
        return (X.matrix() if hasattr(X, "matrix") else X) @ self.slopes


class LeastSquares(Learner):
    capabilities = Capabilities(takes_sparse=True)

    def prepare(self, X, weight, seed, n_threads):
        return X

    def fit(self, data, gradients, sample, rng):
        rows = slice(None) if sample.rows is None else sample.rows
        negative = gradients.negative_gradient
        model = Slopes(np.linalg.lstsq(data[rows], negative[rows], rcond=None)[0])
        term = Term.of(model, slice(0, negative.shape[1]))
        return [FittedTerm(term, outputs=model.predict_raw(data))]


@pytest.mark.parametrize(
    ("model", "instead"),
    [
        (BoostingRegressor(learner=LeastSquares(), **FEW), "tree"),
        (BoostingRegressor(learner=["tree", LeastSquares()], **FEW), "tree"),
        (BoostingClassifier(learner=LeastSquares(), **FEW), "tree"),
        (OutputKernelBoostingRegressor(learner=LeastSquares(), **FEW), "extra_trees"),
    ],
    ids=["alone", "in a list", "classifier", "output space"],
)
def test_fits_and_predictions_name_the_cell(model, instead):
    y = Y[:, None] if instead == "extra_trees" else (Y > 0).astype(int)
    said = rf"in row 5 of column 2, which LeastSquares .*drop missing values.*learner='{instead}'"
    with pytest.raises(InvalidData, match=said):
        model.fit(ODD, y)
    model.fit(X, y)
    with pytest.raises(InvalidData, match=said):
        model.predict(ODD)


def test_other_forms_of_tables():
    model = BoostingRegressor(learner=LeastSquares(), **FEW)
    with pytest.raises(InvalidData, match="X contains NaN in row 5 of column 'c'"):
        model.fit(pd.DataFrame(ODD, columns=list("abc")), Y)
    with pytest.raises(InvalidData, match="X contains NaN in row 5 of column 2"):
        model.fit(sp.csr_array(ODD), Y)
    with pytest.raises(InvalidData, match="X_val: X contains NaN in row 5 of column 2"):
        model.fit(X, Y, X_val=ODD, y_val=Y)


def test_other_learners_check_their_inputs_themselves():
    tree = BoostingRegressor(learner=DecisionTreeRegressor(max_depth=2), **FEW)
    assert np.isfinite(tree.fit(ODD, Y).predict(ODD)).all()
    machine = BoostingRegressor(learner=["tree", "kernel"], **FEW)
    assert np.isfinite(machine.fit(ODD, Y).predict(ODD)).all()

"""Stages that worker 0 has sent: a fit that continues from any of them gives the same model."""

import numpy as np
import pytest
from sklearn.base import clone
from tests.cases import PLAIN
from tests.workers.together import partitions_of, run_together, saved

from hilboost import BoostingClassifier, OutputKernelBoostingRegressor
from hilboost.core.exchange import RowShare
from hilboost.training.fingerprints import fingerprint
from hilboost.workers.fit import WorkerTask, fit_share
from hilboost.workers.progress import Progress, StageLog

PARAMETERS = [
    {"early_stopping": True, "cv_folds": 1, "max_features": "auto"},
    {"early_stopping": True, "cv_folds": 2, "subsample": 0.8, "eval_metric": ["auc", "accuracy"]},
    {"early_stopping": True, "cv_folds": 1, "n_iter_no_change": 1, "n_estimators": 40},
]


MODELS = [
    BoostingClassifier(**PLAIN | {"n_estimators": 6, "random_state": 2} | parameters)
    for parameters in PARAMETERS
]
OUTPUT_KERNEL = OutputKernelBoostingRegressor(
    "gaussian", learner="extra_trees", n_estimators=6, subsample=0.8, random_state=2
)


@pytest.mark.parametrize("model", [*MODELS, OUTPUT_KERNEL], ids=str)
def test_a_fit_continues_from_the_records(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 5))
    y = (X[:, 0] + rng.normal(size=150) > 0).astype(int)
    parts, seed = partitions_of(X, y, cuts=[50, 90]), model._seed()

    def fit(n_workers, records):
        kept = []

        def work(exchange):
            own = parts[exchange.rank :: n_workers]
            progress = Progress(kept.append if exchange.rank == 0 else None)
            log = StageLog()
            assert all(log.add(record) for record in records)
            given = WorkerTask(model, seed), own, [], exchange
            return fit_share(*given, continuation=log.fit, progress=progress)[0]

        found = clone(model)
        found.n_features_in_ = 5
        found.fitted_ = run_together(n_workers, work)[0]
        return found, kept

    whole, records = fit(2, [])
    assert [record.event.stage for record in records] == list(range(1, len(records) + 1))
    for n_kept in (1, len(records) // 2, len(records)):
        again, more = fit(3, records[:n_kept])
        if model is OUTPUT_KERNEL:  # whose gains of splits are rounded sums
            np.testing.assert_allclose(again.predict_raw(X), whole.predict_raw(X), rtol=1e-8)
        else:
            assert saved(again) == saved(whole)
        assert len(more) == len(records) - n_kept


def test_fingerprints_do_not_depend_on_the_division():
    X = np.random.default_rng(0).normal(size=(50, 3))
    changed, moved = X.copy(), X[::-1].copy()
    changed[40, 2] += 1e-12

    def found(table, cuts):
        ends = [0, *cuts, 50]

        def work(exchange):
            own = slice(*ends[exchange.rank : exchange.rank + 2])
            share = RowShare(exchange, 50, np.arange(50, dtype=np.uint32)[own])
            return fingerprint(table[own], share), fingerprint(table[own, 0], share)

        return set(run_together(len(cuts) + 1, work))

    (alone,) = found(X, [])
    for cuts in ([20], [20, 20], [0, 10, 50]):
        assert found(X, cuts) == {alone}
    for other in (changed, moved):
        assert alone not in found(other, [20])

"""Fits on a cluster of two processes: the bytes of one process, also if a worker is killed."""

import os
import signal
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests.cases import PLAIN
from tests.workers.together import saved

from hilboost import BoostingClassifier, BoostingRegressor
from hilboost.core.errors import HilboostError

pytest.importorskip("distributed")

import dask
import dask.array as da
import dask.dataframe as dd
from distributed import Client, LocalCluster

import hilboost.dask

pytestmark = pytest.mark.filterwarnings("default")  # those of dask and its dependencies

RNG = np.random.default_rng(0)
N = 1500
X = RNG.normal(size=(N, 4))
Y = X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=N)
MODEL = BoostingRegressor(**PLAIN | {"n_estimators": 30, "random_state": 0})


@pytest.fixture(scope="module")
def client():
    with (
        dask.config.set({"distributed.worker.daemon": True}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def alone():
    return saved(clone(MODEL).fit(X, Y))


def arrays(y=Y, chunks=(500, 250, 750)):
    return da.from_array(X, chunks=(chunks, (4,))), da.from_array(y, chunks=(chunks,))


def test_arrays_and_predictions(client, alone):
    seen = []
    model = hilboost.dask.fit(clone(MODEL), *arrays(), client=client, callbacks=[seen.append])
    assert saved(model) == alone
    assert seen[0].stage == 1
    lazy = hilboost.dask.predict(model, arrays()[0])
    assert lazy.shape == (N,)
    np.testing.assert_array_equal(lazy.compute(), model.predict(X))


def test_frames_weights_validation_and_empty_partitions(client):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(e=rng.choice(list("xyz"), N))
    labels = pd.Series(np.where(Y > 0, "up", "down"))
    weight = pd.Series(rng.uniform(0.5, 2, N))
    model = BoostingClassifier(**PLAIN | {"n_estimators": 5, "random_state": 1})
    model.set_params(early_stopping=True)
    cuts = [0, 400, 400, 1000, 1200]

    def delayed(table, cuts):
        return [dask.delayed(table[a:b]) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]

    held = frame[1200:], labels[1200:]
    found = hilboost.dask.fit(
        clone(model),
        delayed(frame, cuts),
        delayed(labels, cuts),
        sample_weight=delayed(weight, cuts),
        X_val=dd.from_pandas(held[0], npartitions=2),
        y_val=dd.from_pandas(held[1], npartitions=2),
        client=client,
    )
    model.fit(frame[:1200], labels[:1200], weight[:1200], X_val=held[0], y_val=held[1])
    assert saved(found) == saved(model)
    table = dd.from_pandas(frame, npartitions=3)
    predicted = hilboost.dask.predict(found, table).compute()
    assert predicted.index.equals(frame.index)
    assert predicted.tolist() == model.predict(frame).tolist()
    np.testing.assert_array_equal(
        hilboost.dask.predict_proba(found, table).compute(), model.predict_proba(frame)
    )


def test_two_fits_at_once(client, alone):
    found = []

    def work():
        found.append(saved(hilboost.dask.fit(clone(MODEL), *arrays(), client=client)))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert found == [alone, alone]


def test_errors_name_the_partition(client):
    y = Y.copy()
    y[600] = np.nan
    with pytest.raises(HilboostError, match="partition 1: Input y contains NaN in row 100"):
        hilboost.dask.fit(clone(MODEL), *arrays(y), client=client)
    with pytest.raises(HilboostError, match="X must be a Dask DataFrame, a Dask Array or a list"):
        hilboost.dask.fit(clone(MODEL), X, Y, client=client)
    with pytest.raises(HilboostError, match="X has 3 partitions, but y has 1"):
        hilboost.dask.fit(clone(MODEL), arrays()[0], da.from_array(Y, chunks=N), client=client)
    with pytest.raises(HilboostError, match="only one of X_val and y_val"):
        hilboost.dask.fit(clone(MODEL), *arrays(), X_val=arrays()[0], client=client)
    with pytest.raises(HilboostError, match="X must be a Dask DataFrame or a Dask Array"):
        hilboost.dask.predict(clone(MODEL), X)


def test_a_killed_worker_changes_nothing(client, alone):
    client.wait_for_workers(2)
    pids = list(client.run(os.getpid).values())
    killed = threading.Event()

    def kill(event):
        if event.stage >= 5 and not killed.is_set():
            killed.set()
            os.kill(pids[0], signal.SIGKILL)

    model = hilboost.dask.fit(clone(MODEL), *arrays(), client=client, callbacks=[kill])
    assert killed.is_set()
    assert saved(model) == alone
    client.wait_for_workers(2)


def test_too_many_losses(client):
    client.wait_for_workers(2)

    def kill(event):
        os.kill(pids[1], signal.SIGKILL)

    pids = list(client.run(os.getpid).values())
    with pytest.raises(HilboostError, match="workers were lost 1 times"):
        hilboost.dask.fit(
            clone(MODEL).set_params(n_estimators=3000),
            *arrays(),
            client=client,
            callbacks=[kill],
            max_restarts=0,
        )

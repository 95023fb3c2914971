"""Fits on a cluster of three processes: the bytes of one process, also if a worker is killed."""

import importlib
import logging
import os
import shutil
import signal
import subprocess
import threading
import time
from concurrent.futures import CancelledError
from ssl import SSLSocket

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests.cases import PLAIN
from tests.workers.together import saved

from hilboost import (
    BoostingClassifier,
    BoostingRegressor,
    KernelBoostingRegressor,
    OutputKernelBoostingRegressor,
)
from hilboost.callbacks import Checkpoint
from hilboost.core.errors import HilboostError
from hilboost.kernels import Gaussian
from hilboost.outputs import KernelOutput

pytest.importorskip("distributed")

import dask
import dask.array as da
import dask.dataframe as dd
from distributed import Client, LocalCluster
from distributed.security import Security
from tests.dask.loaded import FORKED, load_before_forking

import hilboost.dask
from hilboost.dask import session
from hilboost.dask.cluster import _forget, evenly, outcome_of
from hilboost.workers.exchange import SocketExchange

pytestmark = pytest.mark.filterwarnings("default")  # those of dask and its dependencies

RNG = np.random.default_rng(0)
N = 1500
X = RNG.normal(size=(N, 4))
Y = X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=N)
MODEL = BoostingRegressor(**PLAIN | {"n_estimators": 30, "random_state": 0})
LONG = clone(MODEL).set_params(n_estimators=80)


CONTEXT = load_before_forking()


@pytest.fixture(scope="module")
def client():
    # A cluster closes the nanny of a worker that is away when this timeout ends, also if the worker
    # was killed twice and is just being started again.
    settings = {"distributed.worker.daemon": True, "distributed.deploy.lost-worker-timeout": "1 h"}
    with (
        dask.config.set(FORKED | settings),
        LocalCluster(
            n_workers=3, threads_per_worker=1, processes=True, dashboard_address=":0"
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
    model.set_params(learner="tree", early_stopping=True)
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


def test_symmetric_trees(client):
    model = clone(MODEL).set_params(growth="symmetric", n_estimators=5)
    found = hilboost.dask.fit(clone(model), *arrays(), client=client)
    assert saved(found) == saved(model.fit(X, Y))


def test_groups_are_held_out_as_a_whole(client, tmp_path):
    model, groups = clone(MODEL).set_params(learner="tree", early_stopping=True), np.arange(N) % 40
    given = {"client": client, "callbacks": [Checkpoint(tmp_path / "fit")]}
    found = hilboost.dask.fit(clone(model), *arrays(), groups=arrays(groups)[1], **given)
    assert saved(found) == saved(clone(model).fit(X, Y, groups=groups))
    with pytest.raises(HilboostError, match=r"fit to different data \(groups\)"):
        hilboost.dask.fit(clone(model), *arrays(), groups=arrays(groups // 2)[1], **given)


def test_a_checkpoint_and_a_callback_that_ends_the_fit(client, alone, tmp_path):
    path = tmp_path / "fit"

    def end(event):
        return event.stage == 4

    given = {"client": client, "callbacks": [Checkpoint(path), end]}
    four = hilboost.dask.fit(clone(MODEL), *arrays(), **given)
    assert saved(four) == saved(clone(MODEL).fit(X, Y, callbacks=[end]))
    seen = []
    given["callbacks"] = [Checkpoint(path, every_stages=10), seen.append]
    again = hilboost.dask.fit(clone(MODEL), *arrays(chunks=(1100, 400)), **given)
    assert saved(again) == alone
    assert [event.stage for event in seen] == list(range(5, 31))
    seen.clear()
    assert saved(hilboost.dask.fit(clone(MODEL), *arrays(), **given)) == alone
    assert not seen
    with pytest.raises(HilboostError, match=r"fit to different data \(y\)"):
        hilboost.dask.fit(clone(MODEL), *arrays(Y[::-1]), **given)
    with pytest.raises(HilboostError, match="a fit with learning_rate=0.1"):
        hilboost.dask.fit(clone(MODEL).set_params(learning_rate=0.2), *arrays(), **given)
    assert_nothing_is_left(client)


def test_offsets(client):
    offset = X[:, 1] + 0.5
    rows = X[:200] + 1e-9
    held = da.from_array(rows, chunks=(100, 4)), da.from_array(Y[:200], chunks=100)
    model = clone(MODEL).set_params(n_estimators=5, early_stopping=True)
    given = dict(zip(("X_val", "y_val"), held, strict=True))
    found = hilboost.dask.fit(
        clone(model),
        *arrays(),
        offset=arrays(offset)[1],
        **given,
        offset_val=da.from_array(offset[:200], chunks=100),
        client=client,
    )
    alone = clone(model).fit(
        X, Y, offset=offset, X_val=rows, y_val=Y[:200], offset_val=offset[:200]
    )
    assert saved(found) == saved(alone)
    with pytest.raises(HilboostError, match="must both be passed, or neither"):
        hilboost.dask.fit(model, *arrays(), **given, offset=arrays(offset)[1], client=client)
    with pytest.raises(HilboostError, match="offset_val requires X_val and y_val"):
        hilboost.dask.fit(model, *arrays(), offset_val=arrays(offset)[1], client=client)
    with pytest.raises(HilboostError, match="offset is not supported by KernelBoostingRegressor"):
        hilboost.dask.fit(
            KernelBoostingRegressor(), *arrays(), offset=arrays(offset)[1], client=client
        )


def test_distributions_and_bounds(client):
    frame = pd.DataFrame(X, columns=list("abcd"))
    known = pd.DataFrame({"lower": np.minimum(Y, 1), "upper": np.where(Y > 1, np.inf, Y)})
    rows = dd.from_pandas(frame, npartitions=3)
    model = clone(MODEL).set_params(loss="normal", n_estimators=3)
    for y in (pd.Series(Y), known):
        targets = dd.from_pandas(y, npartitions=3)
        found = hilboost.dask.fit(clone(model), rows, targets, client=client)
        expected = clone(model).fit(frame, y)
        assert saved(found) == saved(expected)
        ends = found.predict_distribution(frame).interval(0.9)
        np.testing.assert_array_equal(ends, expected.predict_distribution(frame).interval(0.9))
        predicted = hilboost.dask.predict(found, rows).compute()
        np.testing.assert_array_equal(predicted, expected.predict(frame))
    with pytest.raises(HilboostError, match="X is a lazy DASK table; compute it first"):
        found.predict_distribution(rows)
    known.loc[1100, ["lower", "upper"]] = 2.0, 1.0
    message = "partition 2: in row 100 of y .* the lower bound is above the upper one"
    with pytest.raises(HilboostError, match=message):
        hilboost.dask.fit(clone(model), rows, dd.from_pandas(known, npartitions=3), client=client)
    array = da.from_array(known.to_numpy(), chunks=((500, 250, 750), (2,)))
    with pytest.raises(HilboostError, match="partition 0: .* name the columns 'lower' and 'upper'"):
        hilboost.dask.fit(clone(model), arrays()[0], array, client=client)


def test_distributions_with_folds(client):
    """Many zeros, and numbers between 0 and 1."""
    counts = RNG.poisson(np.exp(Y)) * (RNG.uniform(size=N) < 0.6)
    targets = {"zero_inflated_poisson": counts.astype(float), "beta": 1 / (1 + np.exp(-Y))}
    settings = {"learner": "tree", "n_estimators": 5, "early_stopping": True, "cv_folds": 3}
    for loss, y in targets.items():
        model = clone(MODEL).set_params(loss=loss, **settings)
        found = hilboost.dask.fit(clone(model), *arrays(y), client=client)
        expected = clone(model).fit(X, y)
        assert saved(found) == saved(expected)
        levels = [one.predict_distribution(X).cdf(y) for one in (found, expected)]
        np.testing.assert_array_equal(*levels)
    y[700] = 1.0
    with pytest.raises(HilboostError, match="partition .* targets between 0 and 1; row .* has 1"):
        hilboost.dask.fit(clone(model), *arrays(y), client=client)


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


def open_sessions(dask_worker):
    own = {key for key in session._listeners if key[1] == dask_worker.address}
    return len(own) + len(dask_worker.state.executing) + len(dask_worker.state.long_running)


def assert_nothing_is_left(client):
    """No session, open port or partition remains on the cluster."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        found = sum(client.run(open_sessions).values())
        if not found and not any(client.has_what().values()):
            return
        time.sleep(0.05)
    raise AssertionError((found, client.has_what()))


def broken(k):
    raise OSError(f"block {k} cannot be read")


def test_errors_name_the_partition(client):
    y = Y.copy()
    y[600] = np.nan
    with pytest.raises(HilboostError, match="partition 1: Input y contains NaN in row 100"):
        hilboost.dask.fit(clone(MODEL), *arrays(y), client=client)
    counts = clone(MODEL).set_params(loss="poisson")
    with pytest.raises(HilboostError, match="partition 0: the poisson loss requires"):
        hilboost.dask.fit(counts, *arrays(), client=client)
    parts = [dask.delayed(X[:700]), dask.delayed(broken)(1)]
    labels = [dask.delayed(Y[:700]), dask.delayed(Y[700:])]
    with pytest.raises(HilboostError, match="partition 1 could not be computed: .*cannot be read"):
        hilboost.dask.fit(clone(MODEL), parts, labels, client=client)
    assert_nothing_is_left(client)
    with pytest.raises(HilboostError, match="sample_weight_val requires X_val"):
        hilboost.dask.fit(clone(MODEL), *arrays(), sample_weight_val=arrays()[1], client=client)
    with pytest.raises(HilboostError, match="partition 1: row 100 of time is missing or infinite"):
        hilboost.dask.fit(clone(MODEL), *arrays(), time=arrays(y)[1], client=client)
    with pytest.raises(HilboostError, match="X must be a Dask DataFrame, a Dask Array or a list"):
        hilboost.dask.fit(clone(MODEL), X, Y, client=client)
    with pytest.raises(HilboostError, match="X has 3 partitions, but y has 1"):
        hilboost.dask.fit(clone(MODEL), arrays()[0], da.from_array(Y, chunks=N), client=client)
    with pytest.raises(HilboostError, match="only one of X_val and y_val"):
        hilboost.dask.fit(clone(MODEL), *arrays(), X_val=arrays()[0], client=client)
    with pytest.raises(HilboostError, match="X must be a Dask DataFrame or a Dask Array"):
        hilboost.dask.predict(clone(MODEL), X)


@pytest.mark.parametrize(
    ("number", "stages"),
    [(signal.SIGKILL, [1, 30]), (signal.SIGSTOP, [1])],
    ids=["killed twice", "frozen"],
)
def test_lost_workers_change_nothing(client, number, stages):
    client.wait_for_workers(2, timeout=300)
    pids = list(client.run(os.getpid).values())
    seen, left = [], list(enumerate(stages))

    def strike(event):
        seen.append(event.stage)
        if left and event.stage >= left[0][1]:
            os.kill(pids[left.pop(0)[0]], number)

    model = hilboost.dask.fit(
        clone(LONG), *arrays(), client=client, callbacks=[strike], timeout=5.0
    )
    if number == signal.SIGSTOP:
        os.kill(pids[0], signal.SIGKILL)  # its nanny starts another one
    assert not left
    assert seen == list(range(1, 81))
    assert saved(model) == saved(clone(LONG).fit(X, Y))
    client.wait_for_workers(2, timeout=300)


def die_in(module, name, n_calls):
    """Let this process end in the n-th call of a function, while the others wait for its sums."""
    module, calls = importlib.import_module(f"hilboost.engine.{module}"), []
    plain = getattr(module, name)

    def deadly(*given):
        calls.append(1)
        if len(calls) == n_calls:
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(*given)

    setattr(module, name, deadly)


@pytest.mark.parametrize(
    "place",
    [("table", "_edges", 1), ("driver", "decide", 40)],
    ids=["binning", "in mid-tree"],
)
def test_a_worker_that_dies_changes_nothing(client, alone, place):
    client.wait_for_workers(2, timeout=300)
    address = next(iter(client.scheduler_info(n_workers=-1)["workers"]))
    client.run(die_in, *place, workers=[address])
    assert saved(hilboost.dask.fit(clone(MODEL), *arrays(), client=client)) == alone
    assert address not in client.scheduler_info(n_workers=-1)["workers"]
    client.wait_for_workers(2, timeout=300)


@pytest.mark.slow
@pytest.mark.parametrize("error", [TimeoutError, CancelledError])
def test_a_worker_that_is_lost_after_its_session(error):
    class Session:
        status = "finished"

        def result(self, timeout):
            raise error

    assert outcome_of(Session(), 1.0).lost == "a worker was lost after the end of its session."


def test_workers_that_join_have_their_part_after_the_next_loss(caplog):
    first, endless = [], clone(MODEL).set_params(n_estimators=5000)

    def exchange_workers(event):
        if first:
            return
        first.extend(client.scheduler_info(n_workers=-1)["workers"])
        cluster.scale(3)
        client.wait_for_workers(3, timeout=300)
        client.run_on_scheduler(_forget, workers=first[:1])

    options = {"threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    end = [lambda event: event.stage == 60]
    with LocalCluster(n_workers=1, **options) as cluster, Client(cluster) as client:
        given = {"client": client, "callbacks": [exchange_workers, *end]}
        with caplog.at_level("INFO", "hilboost"):
            model = hilboost.dask.fit(clone(endless), *arrays(), **given)
        assert first[0] not in client.scheduler_info(n_workers=-1)["workers"]
    assert saved(model) == saved(endless.fit(X, Y, callbacks=end))
    own = [record for record in caplog.records if record.name == "hilboost"]
    sent = [record.args[0] for record in own if "messages" in record.msg]
    assert sent == [2]


@pytest.fixture(scope="module")
def security(tmp_path_factory):
    """Certificates of a cluster, signed by themselves."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl, which makes the certificates, is not installed")
    place = tmp_path_factory.mktemp("tls")
    key, certificate = str(place / "key.pem"), str(place / "certificate.pem")
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made = [openssl, "req", "-x509", *kind, "-subj", "/CN=hilboost", "-days", "2"]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    files = {"tls_ca_file": certificate}
    for role in ("client", "scheduler", "worker"):
        files |= {f"tls_{role}_key": key, f"tls_{role}_cert": certificate}
    return Security(require_encryption=True, **files)


@pytest.mark.slow
def test_workers_of_a_cluster_with_tls_encrypt(security, alone, monkeypatch):
    kinds = []

    class Watched(SocketExchange):
        def send(self, rank, message):
            kinds.append(type(self._neighbors[rank]))
            super().send(rank, message)

    monkeypatch.setattr(session, "SocketExchange", Watched)
    options = {"threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with (
        LocalCluster(n_workers=2, protocol="tls", security=security, **options) as cluster,
        Client(cluster) as client,
    ):
        assert saved(hilboost.dask.fit(clone(MODEL), *arrays(), client=client)) == alone
    assert set(kinds) == {SSLSocket}


def test_partitions_are_divided_evenly():
    holders = {"p": {"a"}, "q": {"a", "b"}, "r": {"a"}, "s": {"a"}, "t": {"a"}}
    owners = evenly(holders, {"a", "b", "c"})
    assert list(owners) == list("pqrst")
    assert sorted(owners.values()) == list("aabbc")
    assert owners["p"] == "a"
    assert owners["q"] == "b"
    assert evenly({"p": {"a"}}, {"a", "b"}) == {"p": "a"}
    assert evenly({}, set()) == {}


def fit_until_killed(address, path, tenth):
    def tell(event):
        if event.stage == 10:
            tenth.set()

    with Client(address) as client:
        given = {"client": client, "callbacks": [Checkpoint(path, every_stages=5), tell]}
        hilboost.dask.fit(clone(LONG).set_params(n_estimators=5000), *arrays(), **given)


@pytest.mark.slow
def test_a_dead_client_leaves_a_checkpoint(client, tmp_path):
    path, tenth = tmp_path / "fit", CONTEXT.Event()
    given = client.scheduler.address, str(path), tenth
    process = CONTEXT.Process(target=fit_until_killed, args=given, daemon=True)
    process.start()
    assert tenth.wait(120)
    process.kill()
    process.join()
    assert_nothing_is_left(client)
    seen = []

    def end(event):
        seen.append(event.stage)
        return len(seen) == 30

    endless = clone(LONG).set_params(n_estimators=5000)
    given = {"client": client, "callbacks": [Checkpoint(path), end]}
    model = hilboost.dask.fit(clone(endless), *arrays(chunks=(1100, 400)), **given)
    assert seen[0] > 5
    assert saved(model) == saved(endless.fit(X, Y, callbacks=[lambda e: e.stage == seen[-1]]))


def test_kernel_machines(client):
    given = {"kernel": Gaussian(1.0), "regularization": 0.1, "random_state": 0}
    model = KernelBoostingRegressor(stages="sparse", n_basis=50, n_estimators=2, **given)
    seen = []
    found = hilboost.dask.fit(clone(model), *arrays(), client=client, callbacks=[seen.append])
    assert saved(found) == saved(clone(model).fit(X, Y))
    assert [event.stage for event in seen] == [1, 2]
    with pytest.raises(HilboostError, match="Checkpoint is not supported by kernel machines"):
        hilboost.dask.fit(model, *arrays(), client=client, callbacks=[Checkpoint("fit")])


def test_data_that_cannot_be_computed_again(client):
    client.wait_for_workers(2, timeout=300)
    address, pid = next(iter(client.run(os.getpid).items()))
    parts = client.scatter([X, Y], workers=[address])
    os.kill(pid, signal.SIGKILL)
    while address in client.scheduler_info(n_workers=-1)["workers"]:
        time.sleep(0.05)
    with pytest.raises(HilboostError, match="partition 0 was lost with its worker"):
        hilboost.dask.fit(clone(MODEL), parts[:1], parts[1:], client=client)
    client.wait_for_workers(2, timeout=300)


def test_too_many_losses(client):
    client.wait_for_workers(2, timeout=300)

    def kill(event):
        if event.stage == 1:
            os.kill(pids[1], signal.SIGKILL)

    pids = list(client.run(os.getpid).values())
    with pytest.raises(HilboostError, match="workers were lost 1 time during"):
        hilboost.dask.fit(
            clone(MODEL).set_params(n_estimators=3000),
            *arrays(),
            client=client,
            callbacks=[kill],
            max_restarts=0,
        )


@pytest.mark.slow
def test_output_kernels(client, caplog):
    """Labels and predictions are partitions of objects."""
    labels = [{"ab"[k] for k in np.flatnonzero(row > 0)} for row in X[:, :2]]
    model = OutputKernelBoostingRegressor(
        "label_set", learner="extra_trees", n_estimators=5, random_state=0
    )
    alone = clone(model).fit(X, labels)
    ends = [0, 500, 500, 750, N]
    parts = [
        [dask.delayed(table[a:b]) for a, b in zip(ends[:-1], ends[1:], strict=True)]
        for table in (X, labels)
    ]
    caplog.set_level(logging.INFO, "hilboost")
    hilboost.dask.fit(model.set_params(learner="auto"), *parts, client=client)
    assert "learner='auto' fits trees on several workers" in caplog.text
    np.testing.assert_allclose(model.predict_raw(X), alone.predict_raw(X), rtol=0, atol=1e-8)
    found = dask.compute(*hilboost.dask.predict(model, arrays()[0]))
    assert [one for part in found for one in part] == alone.predict(X)
    with pytest.raises(HilboostError, match="predict_proba requires a classifier"):
        hilboost.dask.predict_proba(model, arrays()[0])


def test_labels_of_a_class_of_the_user(client):
    """Neither the class of the labels nor their kernel is in a module that workers can import."""

    class Label:
        def __init__(self, value):
            self.value = value

    space = KernelOutput(lambda a, b: float(a.value == b.value), pairwise=True)
    labels = [Label(int(value > 0)) for value in X[:60, 0]]
    model = OutputKernelBoostingRegressor(
        space, learner="extra_trees", n_estimators=2, random_state=0
    )
    parts = [[dask.delayed(t[:40]), dask.delayed(t[40:60])] for t in (X, labels)]
    hilboost.dask.fit(model, *parts, client=client)
    alone = clone(model).fit(X[:60], labels)
    np.testing.assert_allclose(model.predict_raw(X), alone.predict_raw(X), rtol=0, atol=1e-8)

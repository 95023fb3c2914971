"""Fits on a Dask cluster that loses workers or its client: what it costs, and whether it ends.

Run ``python benchmarks/dask_failures.py``.  Every case has a new cluster of single-thread
processes, which are started again if they die, and a table of 400,000 × 28 float32 in eight
partitions.  The time of a case starts with the call of the fit.  XGBoost and LightGBM lose a worker
in the middle of the fit; a case that does not end within half a minute counts as hanging.  The
same fit without a failure shows what a case costs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dask
import numpy as np
from distributed import Client

from _common import Record, markdown_table, study, timed
from dask_cluster import (
    N_PARTS,
    cluster_of,
    hilboost_model,
    large_table,
    lightgbm_model,
    rows,
    xgboost_model,
)

N, N_TREES, LIMIT = 400_000, 100, 30
PEERS = {"XGBoost": xgboost_model, "LightGBM": lightgbm_model}


def _is_training(dask_worker: Any) -> bool:
    from hilboost.dask import session

    return any(key[1] == dask_worker.address for key in session._exchanges)


def _die_while_binning() -> None:
    """Let this process end in the midst of its next binning of columns."""
    from hilboost.engine import tree_data

    def bin_table(*given: Any) -> Any:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return binned(*given)

    binned, tree_data.bin_table = tree_data.bin_table, bin_table


class Striker:
    """Callback that sends a signal to workers, by their numbers, after given stages."""

    def __init__(self, client: Client, blows: Sequence[tuple[int, int]], number: int) -> None:
        self.blows, self.number = list(blows), number
        self.pids = list(client.run(os.getpid).values())

    def __call__(self, event: Any) -> None:
        """Strike if it is time."""
        if self.blows and event.stage >= self.blows[0][0]:
            os.kill(self.pids[self.blows.pop(0)[1]], self.number)


def hilboost_case(
    blows: Sequence[tuple[int, int]] = (),
    number: int = signal.SIGKILL,
    *,
    while_binning: bool = False,
    added: bool = False,
    timeout: float = 120.0,
) -> Record:
    """Fit while workers are struck, and compare with an undisturbed fit."""
    with cluster_of(2) as cluster, Client(cluster) as client:
        X, y = large_table(client, N)
        hilboost_model(X, y, client, 3)  # loads compiled code
        plain = hilboost_model(X, y, client, N_TREES)
        striker = Striker(client, blows, number)
        callbacks: list[Any] = [striker]
        addresses = list(client.scheduler_info(n_workers=-1)["workers"])
        if while_binning:
            client.run(_die_while_binning, workers=addresses[1:])
        if added:

            def add(event: Any) -> None:
                if len(cluster.workers) == 2:
                    cluster.scale(3)
                    client.wait_for_workers(3)

            callbacks.insert(0, add)
        seconds, model = timed(
            lambda: hilboost_model(X, y, client, N_TREES, callbacks, timeout=timeout)
        )
        if striker.blows:
            raise RuntimeError("the fit has ended before a worker was struck")
        if while_binning and addresses[1] in client.scheduler_info(n_workers=-1)["workers"]:
            raise RuntimeError("the worker has not died while it binned")
        if number == signal.SIGSTOP:
            os.kill(striker.pids[blows[0][1]], signal.SIGKILL)
        return {"seconds": seconds, "same": equal(model, plain)}


def equal(model: Any, other: Any) -> bool:
    X, _ = rows(100, 1000)
    return bool((model.predict(X) == other.predict(X)).all())


def client_case() -> Record:
    """Kill the client after 50 trees, and resume from its checkpoint with another one."""
    with (
        cluster_of(2) as cluster,
        Client(cluster) as client,
        tempfile.TemporaryDirectory() as place,
    ):
        path = Path(place) / "fit"
        X, y = large_table(client, N)
        plain = hilboost_model(X, y, client, N_TREES)
        command = [sys.executable, __file__, "--client", cluster.scheduler_address, str(path)]
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()  # printed after 50 trees
        process.kill()
        killed = time.perf_counter()
        while any(client.run(_is_training).values()):
            time.sleep(0.01)
        stopped = time.perf_counter()
        seconds, model = timed(lambda: resumed(client, path))
        return {
            "before": killed - began,
            "until_workers_stop": stopped - killed,
            "resumed": seconds,
            "same": equal(model, plain),
        }


def resumed(client: Client, path: Path, callbacks: Sequence[Any] = ()) -> Any:
    """Fit with a checkpoint."""
    from hilboost.callbacks import Checkpoint

    X, y = large_table(client, N)
    given = [Checkpoint(path, every_stages=10), *callbacks]
    return hilboost_model(X, y, client, N_TREES, given)


def as_client(address: str, path: Path) -> None:
    """Fit until somebody kills this process."""

    def tell(event: Any) -> None:
        if event.stage == 50:
            print("50 trees", flush=True)

    with Client(address) as client:
        resumed(client, path, [tell])


def peer_here(name: str, victim: int) -> None:
    """Fit with a peer, and kill a worker in the middle of another fit; prints for the parent."""
    with cluster_of(2) as cluster, Client(cluster) as client:
        X, y = large_table(client, N)
        PEERS[name](X, y, client, 3)
        plain, model = timed(lambda: PEERS[name](X, y, client, N_TREES))
        pids = list(client.run(os.getpid).values())
        threading.Timer(plain / 2, os.kill, (pids[victim], signal.SIGKILL)).start()
        began = time.perf_counter()
        print(json.dumps({"plain_s": plain}), flush=True)
        try:
            after = PEERS[name](X, y, client, N_TREES)
            found = {"ended": "with a model", "same": equal(after, model)}
        except Exception as error:
            found = {"ended": f"with {type(error).__name__}"}
        print(json.dumps({"seconds": time.perf_counter() - began, **found}), flush=True)
        os._exit(0)  # nothing of a failed fit keeps the process alive


def peer_case(name: str, victim: int) -> Record:
    """Run a case of a peer in a process of its own, within the time limit."""
    command = [sys.executable, __file__, "--peer", name, str(victim)]
    found: Record = {"ended": "not at all"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    timer = threading.Timer(LIMIT + 30, os.killpg, (process.pid, signal.SIGKILL))
    timer.start()
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(b"{"):  # libraries print, too
            found |= json.loads(line)
    timer.cancel()
    return found


UNDISTURBED = "undisturbed"
HILBOOST: dict[str, Callable[[], Record]] = {
    UNDISTURBED: hilboost_case,
    "the first worker is killed after 50 trees": lambda: hilboost_case([(50, 0)]),
    "the second worker is killed after 50 trees": lambda: hilboost_case([(50, 1)]),
    "a worker is killed while it bins": lambda: hilboost_case(while_binning=True),
    "both workers are killed, after 30 and 60 trees": lambda: hilboost_case([(30, 0), (60, 1)]),
    "a worker is frozen after 50 trees (`timeout=3`)": lambda: hilboost_case(
        [(50, 1)], signal.SIGSTOP, timeout=3.0
    ),
    "a worker is added, and one is killed after 50 trees": lambda: hilboost_case(
        [(50, 1)], added=True
    ),
}
CLIENT = "the client is killed after 50 trees"
VICTIMS = ("first", "second")


def measure(library: str, case: str) -> Record:
    if library in PEERS:
        return peer_case(library, VICTIMS.index(case))
    return client_case() if case == CLIENT else HILBOOST[case]()


def page(records: list[Record], facts: str) -> str:
    yes = {True: "yes", False: "no"}
    plain = next((r["seconds"] for r in records if r["case"] == UNDISTURBED), np.nan)
    ours = [
        [r["case"], f"{r['seconds']:.1f}", f"{r['seconds'] - plain:.1f}", yes[r["same"]]]
        for r in records
        if r["case"] in HILBOOST and r["case"] != UNDISTURBED
    ]
    others = [
        [
            r["library"],
            r["case"],
            r["ended"] + ({True: ", the same", False: ", another"}.get(r.get("same"), "")),
            f"{r['seconds'] - r['plain_s'] / 2:.1f}" if "seconds" in r else "",
        ]
        for r in records
        if r["library"] in PEERS
    ]
    resumed = [
        f"If the client is killed after 50 trees, the workers stop after "
        f"{r['until_workers_stop']:.1f} s. A new client that repeats the fit with the same "
        f"checkpoint (every 10 trees) takes {r['resumed']:.1f} s; the model is the same: "
        f"{yes[r['same']]}."
        for r in records
        if r["case"] == CLIENT
    ]
    header = ("hilboost", "seconds", "seconds lost", "same model")
    ends = ("library", "killed worker", "the fit ends", "seconds after the kill")
    parts = [
        "# Lost workers and clients on a Dask cluster",
        f"{N:,} × 28 in {N_PARTS} partitions, {N_TREES} trees of 31 leaves, two workers with one "
        "thread each, which are started again if they die; one run. One undisturbed fit took "
        f"{plain:.1f} s.",
        markdown_table(header, ours),
        *resumed,
        markdown_table(ends, others),
        facts,
    ]
    return "\n\n".join(parts)


def main() -> None:
    """Measure, or play a part in it."""
    if sys.argv[1:2] == ["--client"]:
        as_client(sys.argv[2], Path(sys.argv[3]))
    elif sys.argv[1:2] == ["--peer"]:
        peer_here(sys.argv[2], int(sys.argv[3]))
    else:
        cases = [{"library": "hilboost", "case": case} for case in (*HILBOOST, CLIENT)]
        cases += [{"library": name, "case": case} for name in PEERS for case in VICTIMS]
        study("dask_failures", cases, measure, page, about=__doc__, threads=2)


if __name__ == "__main__":
    dask.config.set({"distributed.worker.daemon": True})
    np.seterr(all="ignore")
    main()

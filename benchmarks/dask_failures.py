"""Fits on a Dask cluster that loses workers or its client: what it costs, and whether it ends.

Run ``python benchmarks/dask_failures.py``.  Every case has a new cluster of single-thread
processes, which are started again if they die, and a table of 400,000 × 28 float32 in eight
partitions.  The time of a case starts with the call of the fit.  XGBoost and LightGBM lose a worker
in the middle of the fit; a case that does not end within half a minute counts as hanging.
"""

from __future__ import annotations

import argparse
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

from _common import (
    RESULTS,
    Record,
    environment,
    environment_markdown,
    markdown_table,
    publish,
    timed,
    write_json,
)
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
) -> tuple[float, bytes]:
    """Fit while workers are struck; return the seconds and the predictions."""
    with cluster_of(2) as cluster, Client(cluster) as client:
        X, y = large_table(client, N)
        hilboost_model(X, y, client, 3)  # loads compiled code
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
        return seconds, model.predict(rows(100, 1000)[0]).tobytes()


def client_case() -> tuple[dict[str, float], bytes]:
    """Kill the client after 50 trees, and resume from its checkpoint with another one."""
    with (
        cluster_of(2) as cluster,
        Client(cluster) as client,
        tempfile.TemporaryDirectory() as place,
    ):
        path = Path(place) / "fit"
        X, y = large_table(client, N)
        hilboost_model(X, y, client, 3)
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
        times = {
            "before": killed - began,
            "until_workers_stop": stopped - killed,
            "resumed": seconds,
        }
        return times, model.predict(rows(100, 1000)[0]).tobytes()


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


def peer_case(name: str, blows: int) -> dict[str, Any]:
    """Fit with a peer, and kill a worker in the middle if asked to; prints for the parent."""
    with cluster_of(2) as cluster, Client(cluster) as client:
        X, y = large_table(client, N)
        X_test, _ = rows(100, 1000)
        PEERS[name](X, y, client, 3)
        plain, model = timed(lambda: PEERS[name](X, y, client, N_TREES))
        pids = list(client.run(os.getpid).values())
        threading.Timer(plain / 2, os.kill, (pids[blows], signal.SIGKILL)).start()
        began = time.perf_counter()
        print(json.dumps({"plain_s": plain}), flush=True)
        try:
            after = PEERS[name](X, y, client, N_TREES)
            same = bool((after.predict(X_test) == model.predict(X_test)).all())
            found = {"ended": "with a model", "same": same}
        except Exception as error:
            found = {"ended": f"with {type(error).__name__}"}
        print(json.dumps({"seconds": time.perf_counter() - began, **found}), flush=True)
        os._exit(0)  # nothing of a failed fit keeps the process alive


def of_peer(name: str, victim: int) -> dict[str, Any]:
    """Run a case of a peer in a process of its own, within the time limit."""
    command = [sys.executable, __file__, "--peer", name, "--victim", str(victim)]
    found: dict[str, Any] = {"library": name, "victim": victim, "ended": "not at all"}
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


CASES: dict[str, Callable[[], tuple[float, bytes]]] = {
    "nothing happens": lambda: hilboost_case(),
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


def main() -> None:
    """Measure and write JSON and Markdown, or play a part in it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--client", nargs=2)
    parser.add_argument("--peer")
    parser.add_argument("--parts", default="hilboost,XGBoost,LightGBM", help="may be empty")
    parser.add_argument("--victim", type=int, default=0)
    given = parser.parse_args()
    if given.client:
        as_client(given.client[0], Path(given.client[1]))
    elif given.peer:
        peer_case(given.peer, given.victim)
    else:
        measure(given.parts.split(","))


def measure_hilboost() -> dict[str, Any]:
    """Run all cases of hilboost."""
    about = environment(2)
    found = {}
    for name, case in CASES.items():
        found[name] = case()
        print(name, found[name][0], flush=True)
    times, content = client_case()
    print(times, flush=True)
    plain, alone = found["nothing happens"]
    results = [
        {"case": name, "seconds": seconds, "lost_s": seconds - plain, "same": bits == alone}
        for name, (seconds, bits) in found.items()
    ]
    client = {**times, "same": content == alone}
    return {"environment": about, "rows": N, "results": results, "client": client}


def measure_peer(name: str) -> list[dict[str, Any]]:
    """Run the cases of another library."""
    found = [of_peer(name, victim) for victim in (0, 1)]
    print(found, flush=True)
    return found


def measure(parts: Sequence[str]) -> None:
    """Run some parts, and write JSON and Markdown with the last results of the others."""
    path = RESULTS / "dask_failures.json"
    content = json.loads(path.read_text()) if path.exists() else {}
    if "hilboost" in parts:
        content |= measure_hilboost()
    for name in (name for name in PEERS if name in parts):
        content[name] = measure_peer(name)
        write_json(path, content)
    peers = [one for name in PEERS for one in content.get(name, [])]
    publish(
        path, content, page(content["results"], content["client"], peers, content["environment"])
    )


def page(results: list[Record], client: Record, peers: list[Record], about: Record) -> str:
    ours = [
        [r["case"], f"{r['seconds']:.1f}", f"{r['lost_s']:.1f}", "yes" if r["same"] else "no"]
        for r in results
    ]
    others = [
        [
            p["library"],
            "first" if p["victim"] == 0 else "second",
            p["ended"] + ({True: ", the same", False: ", another"}.get(p.get("same"), "")),
            f"{p['seconds'] - p['plain_s'] / 2:.1f}" if "seconds" in p else "",
        ]
        for p in peers
    ]
    ends = ("library", "killed worker", "the fit ends", "seconds after the kill")
    return (
        "# Lost workers and clients on a Dask cluster\n\n"
        f"{N:,} × 28 in {N_PARTS} partitions, {N_TREES} trees of 31 leaves, two workers with one "
        "thread each, which are started again if they die; one run.\n\n"
        f"{markdown_table(('hilboost', 'seconds', 'seconds lost', 'same model'), ours)}\n\n"
        "If the client is killed after 50 trees, the workers stop after "
        f"{client['until_workers_stop']:.1f} s. A new client that repeats the fit with the same "
        f"checkpoint (every 10 trees) takes {client['resumed']:.1f} s; the model is the same: "
        f"{'yes' if client['same'] else 'no'}.\n\n"
        f"{markdown_table(ends, others)}\n\n{environment_markdown(about)}"
    )


if __name__ == "__main__":
    dask.config.set({"distributed.worker.daemon": True})
    np.seterr(all="ignore")
    main()

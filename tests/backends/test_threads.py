"""Threads: order of results, errors, and that nobody waits for a thread that has failed."""

import signal
import threading
import time
import weakref

import pytest

from hilboost.backends.compiled import compiled
from hilboost.backends.threads import ThreadTeam
from hilboost.engine.ops.cpu.sync import ABORT, Threads, claim, new_sync


def test_map_keeps_the_order_of_the_tasks():
    with ThreadTeam(3) as team:
        assert team.map(lambda task: task**2, range(50)) == [task**2 for task in range(50)]


def test_nothing_of_a_task_is_kept_until_the_next_one():
    class Memory:
        pass

    memory = Memory()
    used = weakref.ref(memory)
    with ThreadTeam(2) as team:
        team.run(lambda _, held=memory: None)
        del memory
        assert used() is None


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_in_any_thread_reaches_the_caller(failing):
    def work(thread):
        if thread == failing:
            raise KeyError("lost")

    with ThreadTeam(2) as team, pytest.raises(KeyError, match="lost"):
        team.run(work)


@compiled
def claim_all(threads):
    """A way in from Python."""
    while claim(threads) >= 0:
        pass


@pytest.mark.parametrize("failing", [0, 1])
def test_threads_that_wait_for_tasks_are_released_when_one_fails(failing):
    sync = new_sync()
    sync[ABORT] = 1
    claim_all(Threads(0, 1, sync))  # compiled before others wait
    sync[ABORT] = 0

    def work(thread):
        if thread == failing:
            raise KeyError("lost")
        claim_all(Threads(thread, 2, sync))

    def abort():
        sync[ABORT] = 1

    with ThreadTeam(2) as team, pytest.raises(KeyError, match="lost"):
        team.run(work, on_error=abort)


def test_an_interrupt_waits_for_the_other_threads():
    main, ended = threading.main_thread().ident, []

    def work(thread):
        if thread == 1:
            time.sleep(0.1)
            signal.pthread_kill(main, signal.SIGINT)
            time.sleep(0.2)
            ended.append(thread)

    # Processes that a shell starts in the background ignore interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with ThreadTeam(2) as team:
            team.run(lambda thread: None)
            with pytest.raises(KeyboardInterrupt):
                team.run(work)
            assert ended == [1]
    finally:
        signal.signal(signal.SIGINT, before)


def test_tasks_may_have_tasks_of_their_own():
    def sums(team, k):
        return sum(team.map(lambda task: task * k, range(20)))

    for n_threads in (1, 2, 5):
        with ThreadTeam(n_threads) as team:
            found = team.map(lambda k, team=team: sums(team, k), range(30))
        assert found == [190 * k for k in range(30)]


def test_threads_without_a_task_help_with_the_tasks_of_others():
    both_came, is_done = threading.Barrier(2), threading.Event()

    def work(task):
        if task == 1:
            is_done.wait()  # this thread cannot help
        else:
            try:
                team.map(lambda _: both_came.wait(timeout=20), range(2))
            finally:
                is_done.set()

    with ThreadTeam(4) as team:
        team.map(work, range(2))


def test_threads_end_with_the_block():
    before = threading.active_count()
    with ThreadTeam(4) as team:
        team.run(lambda thread: None)
        assert threading.active_count() == before + 3
    assert threading.active_count() == before


def test_nobody_waits_for_a_thread_that_does_not_come():
    may_go, blocked = threading.Event(), threading.Event()

    def work(thread):
        if thread == 1:
            blocked.set()
            may_go.wait()
        else:
            blocked.wait()

    with ThreadTeam(2) as team:
        team.cooperate(work, may_go.set, 2)  # ends here, while the other thread is still busy
        assert team.map(lambda task: task**2, range(50)) == [task**2 for task in range(50)]
        assert not may_go.is_set()
        may_go.set()


def test_no_more_threads_than_are_wanted_take_part():
    came = []
    with ThreadTeam(4) as team:
        for n_threads in (1, 2, 3):
            all_came = threading.Barrier(n_threads)

            def work(thread, all_came=all_came):
                came.append(thread)
                all_came.wait(timeout=20)

            team.cooperate(work, all_came.abort, n_threads)
            assert len(came) == n_threads
            came.clear()


def test_an_error_in_a_task_ends_the_others():
    done = []

    def work(task):
        if task == 3:
            raise KeyError("lost")
        done.append(task)
        time.sleep(0.001)

    with ThreadTeam(2) as team, pytest.raises(KeyError, match="lost"):
        team.map(work, range(1000))
    assert len(done) < 900

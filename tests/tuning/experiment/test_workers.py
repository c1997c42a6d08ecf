"""Workers: the same results for any number of processes, and none left behind."""

import operator
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import worker_tasks

from ordinate.errors import BadOption, OrdinateError
from ordinate.tuning.classify.cross_validation import split_folds
from ordinate.tuning.classify.task import ClassifierFit, LabelledFeatures
from ordinate.tuning.experiment.workers import WorkerPool, report_progress
from ordinate.tuning.search.fits import run_fit

KINDS = ("logistic", "lightgbm", "threshold")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    levels = rng.integers(0, 3, 60).astype(np.intp)
    return LabelledFeatures(levels[:, None] + rng.normal(size=(60, 5)), levels)


def test_results_come_in_the_order_of_the_tasks():
    with WorkerPool(2) as workers:
        for name in "abc":
            workers.keep(name, ord(name))
        found = workers.map(operator.getitem, list("cabbac"))
    assert found == [ord(name) for name in "cabbac"]


def test_fits_are_equal_to_the_last_bit_here_and_in_other_processes(data):
    first, second = split_folds(data.levels, None, 2, seed=0)
    usual = {"size": 3, "seed": 0, "strategy": "equal", "alpha": 1.0}
    fits = [
        ClassifierFit(input="set", model_type=one, params={}, train=train, new=new, **usual)
        for one in KINDS
        for train, new in ((first, second), (second, first))
    ]
    found = []
    for jobs in (1, 2):
        with WorkerPool(jobs) as workers:
            workers.keep("set", data)
            found.append([one.predictions.tobytes() for one in workers.map(run_fit, fits)])
    assert found[0] == found[1]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_function_runs_with_one_thread(jobs):
    with WorkerPool(jobs) as workers:
        (told,) = workers.map(worker_tasks.threads_of, [None])
    assert told
    assert set(told) == {1}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_value_is_replaced_or_dropped_for_all_later_tasks(jobs):
    with WorkerPool(jobs) as workers:
        workers.keep("a", 1)
        assert workers.map(operator.getitem, ["a", "a", "a"]) == [1, 1, 1]
        workers.keep("a", 2)
        assert workers.map(operator.getitem, ["a", "a", "a"]) == [2, 2, 2]
        workers.drop("a")
        with pytest.raises(KeyError, match="a"):
            workers.map(operator.getitem, ["a"])


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_ordinate_comes_back_as_itself(jobs):
    with WorkerPool(jobs) as workers:
        found = workers.attempt(worker_tasks.only_even, [2, 3, 4, 5])
        assert found[0] == 2
        assert [type(each) for each in found[1::2]] == [BadOption, BadOption]
        assert str(found[1]) == "3 is odd."
        with pytest.raises(BadOption, match="3 is odd"):
            workers.map(worker_tasks.only_even, [2, 3, 4, 5])
        assert workers.map(worker_tasks.only_even, [6]) == [6]  # and they go on


@pytest.mark.parametrize("jobs", [1, 2])
def test_other_errors_are_raised_even_from_an_attempt(jobs):
    with WorkerPool(jobs) as workers, pytest.raises(ZeroDivisionError, match="division by zero"):
        workers.attempt(worker_tasks.divided, [1, 0])


def test_an_error_from_another_process_says_where_it_happened():
    with WorkerPool(2) as workers, pytest.raises(ZeroDivisionError, match="zero") as found:
        workers.map(worker_tasks.divided, [1, 0])
    assert "in divided" in found.value.__notes__[0]


def test_what_cannot_travel_is_told_in_words():
    with WorkerPool(2) as workers, pytest.raises(RuntimeError, match="cannot be sent"):
        workers.map(worker_tasks.unsendable, [None])


def test_a_function_that_workers_cannot_find_is_an_error_for_any_number_of_tasks():
    told = _told_by(
        "def double(kept, task):\n"
        "    return 2 * task\n"
        "with WorkerPool(2) as workers:\n"
        "    for number in (1, 2, 3, 9):\n"
        "        try:\n"
        "            workers.map(double, list(range(number)))\n"
        "        except AttributeError as error:\n"
        "            print(number, \"'double'\" in str(error))\n"
        "    print(workers.map(own.only_even, [2, 4, 6]))\n"
    )
    assert told == ["1 True", "2 True", "3 True", "9 True", "[2, 4, 6]"]


def test_a_task_that_cannot_be_read_is_an_error_and_the_next_call_has_its_own_answers():
    told = _told_by(
        "with WorkerPool(2) as workers:\n"
        "    try:\n"
        "        workers.attempt(own.only_even, [2, 4, own.Unreadable('six'), 8, 10, 12])\n"
        "    except ValueError as error:\n"
        "        print(error)\n"
        "    print(workers.map(own.only_even, [14, 16, 18]))\n"
    )
    assert told == ["six cannot be read.", "[14, 16, 18]"]


def test_a_kept_value_that_cannot_be_read_is_an_error_whatever_follows_it():
    told = _told_by(
        "with WorkerPool(2) as workers:\n"
        "    workers.keep('a', own.Unreadable('a'))\n"
        "    workers.keep('b', bytes(10_000_000))  # more than a pipe holds\n"
        "    for _ in range(2):\n"
        "        try:\n"
        "            workers.map(own.only_even, [2, 4, 6])\n"
        "        except ValueError as error:\n"
        "            print(error)\n"
        "    workers.drop('a')\n"
        "    print(workers.map(own.only_even, [2, 4, 6]))\n"
    )
    assert told == ["a cannot be read.", "a cannot be read.", "[2, 4, 6]"]


def test_a_worker_that_dies_is_reported_and_the_next_call_has_new_ones():
    with WorkerPool(2) as workers:
        with pytest.raises(OrdinateError, match=r"ended on its own \(exit code 7\).*--jobs"):
            workers.map(worker_tasks.leave, [7, 7])
        assert workers.map(worker_tasks.only_even, [2, 4]) == [2, 4]


@pytest.mark.parametrize("survivor", [0, 1])
def test_when_one_worker_dies_the_others_begin_nothing_more(survivor, tmp_path):
    notes = tmp_path / "notes"
    notes.touch()
    with WorkerPool(2) as workers:
        workers.map(worker_tasks.pid, [0, 1])
        pid = workers._processes[survivor]._process.pid
        with pytest.raises(OrdinateError, match=r"ended on its own \(exit code 7\)"):
            workers.map(worker_tasks.outlive, [(pid, notes)] * 3)
        assert notes.read_text("utf-8") in ("", "begun\n")
        assert not _alive(pid)
        assert workers.map(worker_tasks.only_even, [2, 4, 6]) == [2, 4, 6]


def test_what_a_function_says_does_not_disturb_its_answer(capfd):
    with WorkerPool(2) as workers:
        assert workers.map(worker_tasks.say, ["a", "b"]) == ["a", "b"]
    assert capfd.readouterr().out == ""


def test_no_process_is_left_when_the_work_is_done():
    with WorkerPool(2) as workers:
        pids = workers.map(worker_tasks.pid, [0, 1, 2, 3])
        assert os.getpid() not in pids
    assert not any(map(_alive, set(pids)))


@pytest.mark.parametrize("jobs", [0, -1, 1.5, True])
def test_a_number_of_processes_below_one_is_refused(jobs):
    with pytest.raises(BadOption, match="pass 1 or more"):
        WorkerPool(jobs)


def test_workers_end_by_themselves_when_their_coordinator_is_killed():
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import worker_tasks as own\n"
        "from ordinate.tuning.experiment.workers import WorkerPool\n"
        "workers = WorkerPool(2)\n"
        "workers.map(own.pid, [0, 1])\n"
        "print(*(each._process.pid for each in workers._processes), flush=True)\n"
        "workers.map(own.sleep, [60, 60])\n"
    )
    command = [sys.executable, "-c", script, str(Path(worker_tasks.__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as coordinator:
        pids = [int(word) for word in coordinator.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(_alive, pids))
        time.sleep(0.2)  # so that they sleep in the middle of a task
        coordinator.send_signal(signal.SIGKILL)
    assert all(map(_gone, pids))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_ends_the_work_and_the_workers_at_once(number):
    script = (
        "import signal, sys; sys.path.insert(0, sys.argv[1])\n"
        f"signal.signal({int(number)}, signal.default_int_handler)\n"
        "import worker_tasks as own\n"
        "from ordinate.tuning.experiment.workers import WorkerPool\n"
        "try:\n"
        "    with WorkerPool(2) as workers:\n"
        "        workers.map(own.pid, [0, 1])\n"
        "        print(*(each._process.pid for each in workers._processes), flush=True)\n"
        "        workers.map(own.sleep, [60, 60, 60])\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    command = [sys.executable, "-c", script, str(Path(worker_tasks.__file__).parent)]
    running = {"stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(command, **running) as coordinator:
        pids = [int(word) for word in coordinator.stdout.readline().split()]
        os.killpg(coordinator.pid, number)  # as a terminal does, to all of them
        assert coordinator.stdout.read() == "interrupted\n"
    assert len(pids) == 2
    assert not any(map(_alive, pids))


def test_a_plain_script_without_a_guard_can_use_them(tmp_path):
    script = tmp_path / "plain.py"
    script.write_text(
        "import operator\n"
        "from ordinate.tuning.experiment.workers import WorkerPool\n"
        "with WorkerPool(2) as workers:\n"
        "    workers.keep('a', 5)\n"
        "    print(workers.map(operator.getitem, ['a', 'a']))\n",
        "utf-8",
    )
    found = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert found.stdout == "[5, 5]\n"
    assert found.stderr == ""


# --- processes -----------------------------------------------------------------------------------


def _told_by(script):
    """Return the lines that a script prints; one that waits for ever is ended after a while."""
    start = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import worker_tasks as own\n"
        "from ordinate.tuning.experiment.workers import WorkerPool\n"
    )
    command = [sys.executable, "-c", start + script, str(Path(worker_tasks.__file__).parent)]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=120)
    return found.stdout.splitlines()


def _alive(pid):
    """Tell whether a process runs; one that only waits for its parent to look does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def _gone(pid):
    """Wait for a process to end, for as long as a busy machine may need."""
    for _ in range(300):
        if not _alive(pid):
            return True
        time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    return False


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_tasks_tell_on_their_way_is_heard(jobs):
    heard = []
    with WorkerPool(jobs) as workers:
        assert workers.map(worker_tasks.halfway, [1, 2, 3], heard.append) == [1, 2, 3]
        assert workers.attempt(worker_tasks.halfway, [4]) == [4]  # whether anybody listens or not
    assert sorted(heard) == [(1, "half"), (2, "half"), (3, "half")]


def test_nobody_hears_what_is_told_outside_of_tasks():
    report_progress("nothing")
    with WorkerPool(1) as workers, pytest.raises(BadOption):
        workers.map(worker_tasks.only_even, [1], print)
    report_progress("nothing")

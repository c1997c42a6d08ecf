"""Workers: processes that run pure functions on data that each of them is sent once.

Results do not depend on how many there are: they come in the order of the tasks, and every function
runs with one thread, in a worker as in the process that asks. A worker ends by itself when the
process that started it is gone, however that ended, and leaves nothing behind.
"""

import contextlib
import functools
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, NamedTuple, NoReturn, Self, cast

from ordinate.errors import BadOption, MissingExtra, OrdinateError

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

TaskFunction = Callable[[Mapping[str, Any], Any], Any]
Listener = Callable[[Any], None]

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"), "1"
)
# Started by a command of its own, a worker needs neither the script nor the state of its parent.
COMMAND = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from ordinate.tuning.experiment.workers import serve; serve()"
)
EXIT_TIMEOUT = 5.0  # seconds that a worker has to end when it is told to
CHUNK = 1 << 16  # bytes that are passed over at a time, after a message that cannot be read


class ProgressMessage(NamedTuple):
    """What a task says on its way."""

    message: Any


class TaskOutcome(NamedTuple):
    """What came of a task: a result, or the error that it ended with."""

    result: Any
    error: BaseException | None = None


class WorkerPool:
    """Processes that run `function(kept, task)` for many tasks; for one job, this process does.

    `kept` are the values that `keep` has sent under a name. Functions are found by their names, so
    they stand in a module, and they do not change what is kept.

    >>> with WorkerPool(1) as workers:
    ...     workers.keep("base", 2)
    ...     workers.map(lambda kept, task: kept["base"] ** task, [1, 2, 3])
    [2, 4, 8]
    """

    def __init__(self, jobs: int = 1) -> None:
        if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
            raise BadOption(f"jobs={jobs!r} is not a number of processes: pass 1 or more.")
        self.jobs = jobs
        self._kept: dict[str, Any] = {}
        self._processes: list[_WorkerProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def keep(self, name: str, value: Any) -> None:
        """Send a value to each worker, once; a value of the same name is replaced."""
        self._kept[name] = value
        for process in self._processes:
            process.stale.add(name)

    def drop(self, name: str) -> None:
        """Forget a value that is no longer needed."""
        self._kept.pop(name, None)
        for process in self._processes:
            process.stale.add(name)

    def map(
        self, function: TaskFunction, tasks: Sequence[Any], hear: Listener | None = None
    ) -> list[Any]:
        """Return the results in the order of the tasks; of several errors, raise the first.

        `hear` is called with whatever tasks `tell` on their way, in any order.
        """
        outcomes = self._collect_outcomes(function, tasks, hear or _ignore_message)
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error
        return [outcome.result for outcome in outcomes]

    def attempt(
        self, function: TaskFunction, tasks: Sequence[Any], hear: Listener | None = None
    ) -> list[Any]:
        """Return the result of each task or, where it ended with one, the OrdinateError itself."""
        outcomes = self._collect_outcomes(function, tasks, hear or _ignore_message)
        for outcome in outcomes:
            if not (outcome.error is None or isinstance(outcome.error, OrdinateError)):
                raise outcome.error
        return [outcome.result if outcome.error is None else outcome.error for outcome in outcomes]

    def close(self) -> None:
        """End the workers."""
        for process in self._processes:
            process.end()
        self._processes = []

    def _collect_outcomes(
        self, function: TaskFunction, tasks: Sequence[Any], hear: Listener
    ) -> list[TaskOutcome]:
        if self.jobs == 1:
            with _set_listener(hear):
                return [_run_task(function, self._kept, task) for task in tasks]
        while len(self._processes) < min(self.jobs, len(tasks)):
            self._processes.append(_WorkerProcess(self._kept))
        try:
            return self._ask(function, tasks, hear)
        except BaseException:
            self._processes = []  # which have been killed
            raise

    def _ask(
        self, function: TaskFunction, tasks: Sequence[Any], hear: Listener
    ) -> list[TaskOutcome]:
        """Let each worker take the next task when it is free; a thread waits for each of them."""
        places, found = deque(range(len(tasks))), dict[int, TaskOutcome]()

        def work(process: _WorkerProcess) -> None:
            try:
                process.refresh(self._kept)
                while (place := _take_next(places)) is not None:
                    found[place] = process.ask(function, tasks[place], hear)
            except BaseException:
                places.clear()  # so that no other worker begins a task in vain
                raise

        with ThreadPoolExecutor(max(1, len(self._processes))) as threads:
            try:
                waiting = [threads.submit(work, process) for process in self._processes]
                for thread in as_completed(waiting):  # so that whichever fails is known at once
                    thread.result()
            except BaseException:
                self._kill_processes()  # so that no thread waits for an answer any longer
                raise
        return [found[place] for place in range(len(tasks))]

    def _kill_processes(self) -> None:
        for process in self._processes:
            process.kill()


def _take_next(places: deque[int]) -> int | None:
    """Take the next of what several threads take from."""
    try:
        return places.popleft()
    except IndexError:
        return None


class _WorkerProcess:
    """One worker, as the process that started it sees it."""

    def __init__(self, kept: Mapping[str, Any]) -> None:
        path = [folder or str(Path.cwd()) for folder in sys.path]
        self._process = subprocess.Popen(  # noqa: S603 - the same Python, and a command of our own
            [sys.executable, "-c", COMMAND, *path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | ONE_THREAD,
        )
        self.stale = set(
            kept
        )  # names of values that it has not been sent, or not been told to drop

    def refresh(self, kept: Mapping[str, Any]) -> None:
        """Send what has changed since the last time."""
        for name in sorted(self.stale):
            self._send(("keep", name, kept[name]) if name in kept else ("drop", name, None))
        self.stale = set()

    def ask(self, function: TaskFunction, task: Any, hear: Listener) -> TaskOutcome:
        """Send a task, hear what it tells, and wait for what comes of it."""
        self._send(("run", function, task))
        while isinstance(answer := self._receive_answer(), ProgressMessage):
            hear(answer.message)
        result, error, trace, read = answer
        if error is not None and not isinstance(error, OrdinateError):
            error.add_note(f"In a worker process:\n{trace}")
        if not read:
            raise error  # for the worker reads no more, and would never answer another task
        return TaskOutcome(result, error)

    def _receive_answer(self) -> Any:
        try:
            return pickle.load(self._get_pipe("stdout"))  # noqa: S301 - a process that we started
        except EOFError:
            self._raise_lost()

    def end(self) -> None:
        """Let it end by itself, which it does when nothing more can come."""
        with contextlib.suppress(OSError):
            self._get_pipe("stdin").close()
        try:
            self._process.wait(EXIT_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._close_pipes()

    def kill(self) -> None:
        """End it now."""
        self._process.kill()
        self._close_pipes()

    def _close_pipes(self) -> None:
        self._process.wait()
        for name in ("stdin", "stdout"):
            with contextlib.suppress(OSError):
                self._get_pipe(name).close()

    def _send(self, message: tuple[str, Any, Any]) -> None:
        pipe = self._get_pipe("stdin")
        try:
            pickle.dump(message, pipe, protocol=pickle.HIGHEST_PROTOCOL)
            pipe.flush()
        except BrokenPipeError:
            self._raise_lost()

    def _get_pipe(self, name: str) -> IO[bytes]:
        return cast("IO[bytes]", getattr(self._process, name))

    def _raise_lost(self) -> NoReturn:
        code = self._process.wait()
        raise OrdinateError(
            f"A worker process ended on its own (exit code {code}). If it was killed for want of "
            "memory, use fewer processes (--jobs)."
        ) from None


# --- in a worker ---------------------------------------------------------------------------------


def serve() -> None:
    """Run tasks until the process that sends them closes the pipe, or is gone."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # the process that started it decides
        if hasattr(signal, name):  # Windows has no SIGHUP
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    messages = os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)  # what a library prints is no answer
    inbox: SimpleQueue[tuple[str, Any, Any]] = SimpleQueue()
    threading.Thread(target=_receive_messages, args=(messages, inbox), daemon=True).start()
    kept: dict[str, Any] = {}
    with _set_listener(
        lambda message: _send_answer(answers, pickle.dumps(ProgressMessage(message)))
    ):
        while True:
            what, first, second = inbox.get()
            if what == "keep":
                kept[first] = second
            elif what == "drop":
                kept.pop(first, None)
            else:
                read = what != "bad"
                found = _run_task(first, kept, second) if read else TaskOutcome(None, first)
                _send_answer(answers, _pack_outcome(found, read=read))


def _receive_messages(messages: IO[bytes], inbox: "SimpleQueue[tuple[str, Any, Any]]") -> None:
    """Pass messages on, and end the process at once when no more can come, even within a task."""
    try:
        while True:
            inbox.put(pickle.load(messages))  # noqa: S301 - from the process that started this one
    except EOFError:
        pass
    except Exception as error:  # noqa: BLE001 - a message that cannot be read is reported
        inbox.put(("bad", error, None))
        # Where the next one begins is lost, but whoever sends must not wait for a full pipe.
        while messages.read(CHUNK):
            pass
    finally:
        os._exit(0)


def _send_answer(pipe: IO[bytes], packed: bytes) -> None:
    try:
        pipe.write(packed)
        pipe.flush()
    except BrokenPipeError:
        os._exit(0)


def _pack_outcome(outcome: TaskOutcome, *, read: bool) -> bytes:
    """Return an answer: an outcome, where its error arose, and whether the message was read."""
    trace = "" if outcome.error is None else "".join(traceback.format_exception(outcome.error))
    try:
        if outcome.error is not None:
            pickle.loads(pickle.dumps(outcome.error))  # noqa: S301 - some errors fail only here
        return pickle.dumps((*outcome, trace, read), protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as problem:  # noqa: BLE001 - whatever cannot travel is told in words
        told = f"What came of a task cannot be sent: {outcome.error or problem!r}"
        return pickle.dumps((None, RuntimeError(told), trace, read))


# --- in either -----------------------------------------------------------------------------------


def _ignore_message(message: Any) -> None:
    """Hear nothing."""
    del message


_listener: Listener = _ignore_message


def report_progress(message: Any) -> None:
    """Tell those who wait for the result of a task how far it is; there may be nobody.

    >>> with WorkerPool(1) as workers:
    ...     workers.map(lambda kept, task: report_progress(task), ["half"], hear=print)
    half
    [None]
    """
    _listener(message)


@contextlib.contextmanager
def _set_listener(hear: Listener) -> Iterator[None]:
    global _listener  # noqa: PLW0603 - one task at a time runs in a process
    before, _listener = _listener, hear
    try:
        yield
    finally:
        _listener = before


def _run_task(function: TaskFunction, kept: Mapping[str, Any], task: Any) -> TaskOutcome:
    try:
        with limit_to_one_thread():
            return TaskOutcome(function(kept, task))
    except Exception as error:  # noqa: BLE001 - it is raised again where the results are read
        return TaskOutcome(None, error)


@contextlib.contextmanager
def limit_to_one_thread() -> Iterator[None]:
    """Let the numerical libraries that are loaded by now use one thread, as sums depend on it."""
    with _find_libraries(len(sys.modules)).limit(limits=1):
        yield


@functools.lru_cache(maxsize=1)
def _find_libraries(modules: int) -> "ThreadpoolController":  # noqa: ARG001 - the key of the cache
    """Look for libraries with threads, again where modules were imported, which may load some."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        raise MissingExtra(
            "This needs scikit-learn, which is not installed: pip install 'ordinate[tune]'"
        ) from None
    return ThreadpoolController()

"""Functions that workers run in tests; they stand in a module that other processes find."""

import os
import time

from ordinate.errors import BadOption
from ordinate.tuning.experiment.workers import report_progress


def threads_of(_kept, _task):
    import sklearn.linear_model  # noqa: F401 - so that there are libraries with threads
    from threadpoolctl import threadpool_info

    from ordinate.tuning.experiment.workers import limit_to_one_thread

    with limit_to_one_thread():
        return [each["num_threads"] for each in threadpool_info()]


def only_even(_kept, task):
    if task % 2:
        raise BadOption(f"{task} is odd.")
    return task


def divided(_kept, task):
    return 1 / task


def unsendable(_kept, _task):
    return lambda: None


def refuse(word):
    raise ValueError(f"{word} cannot be read.")


class Unreadable:
    """What can be sent, but not be read."""

    def __init__(self, word):
        self.word = word

    def __reduce__(self):
        return refuse, (self.word,)


def leave(_kept, code):
    os._exit(code)


def outlive(_kept, task):
    """Leave, in all workers but one, which notes what it begins and takes its time."""
    survivor, notes = task
    if os.getpid() != survivor:
        os._exit(7)
    with notes.open("a", encoding="utf-8") as file:
        file.write("begun\n")
    time.sleep(60)


def halfway(_kept, task):
    report_progress((task, "half"))
    return task


def say(_kept, word):
    print(word)  # noqa: T201 - what it tests
    return word


def pid(_kept, _task):
    return os.getpid()


def sleep(_kept, seconds):
    time.sleep(seconds)

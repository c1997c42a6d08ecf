"""One process works in a folder; others are told which one."""

import os
import signal
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path

import pytest

from ordinate.errors import BadOutput, FolderLocked
from ordinate.render.reserved_paths import HOLDER_FILE, LOCK_FILE
from ordinate.tuning.experiment.lock import hold_lock
from ordinate.tuning.experiment.safe_files import remove_leftovers

HOLDER = """
import sys, time
from pathlib import Path
from ordinate.tuning.experiment.lock import hold_lock

with hold_lock(Path(sys.argv[1]), "ordinate tune -e here"):
    print("held", flush=True)
    time.sleep(600)
"""

FORKING = """
import os, sys, time
from pathlib import Path
from ordinate.tuning.experiment.lock import hold_lock

with hold_lock(Path(sys.argv[1]), "ordinate tune -e here"):
    if os.fork() == 0:
        print("held", flush=True)  # by the child: what it does after a fork is then done
        sys.stdin.read()  # lives on until the test ends it
        os._exit(0)
    time.sleep(600)
"""


def holding(folder, script=HOLDER):
    command = [sys.executable, "-c", script, str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    return process


def test_the_second_process_is_told_who_holds_the_lock(tmp_path):
    with holding(tmp_path) as holder:
        try:
            told = (
                rf"is in use by process {holder.pid} on .+ since \d{{4}}-.+\+00:00: "
                r"ordinate tune -e here\. Wait for it, or stop it\."
            )
            with pytest.raises(FolderLocked, match=told), hold_lock(tmp_path, "second"):
                pass
        finally:
            holder.kill()


def test_the_lock_of_a_killed_process_blocks_nobody(tmp_path):
    with holding(tmp_path) as holder:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert str(holder.pid) in (tmp_path / HOLDER_FILE).read_text()
    with hold_lock(tmp_path, "next"):
        assert f'"pid": {os.getpid()}' in (tmp_path / HOLDER_FILE).read_text()
    assert list(tmp_path.iterdir()) == []


def test_a_child_that_outlives_its_killed_parent_does_not_hold_the_lock(tmp_path):
    with holding(tmp_path, FORKING) as holder:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with hold_lock(tmp_path, "next"):
            pass


def test_the_lock_is_free_after_an_error(tmp_path):
    with pytest.raises(RuntimeError, match="no more"), hold_lock(tmp_path, "first"):
        raise RuntimeError("no more")
    with hold_lock(tmp_path, "second"):
        pass


def test_the_lock_keeps_out_the_same_process_too(tmp_path):
    with (
        hold_lock(tmp_path, "first"),
        pytest.raises(FolderLocked, match=f"process {os.getpid()} .*: first"),
        hold_lock(tmp_path, "second"),
    ):
        pass


def test_a_holder_that_has_not_said_its_name_yet_still_holds(tmp_path):
    with hold_lock(tmp_path, "first"):
        (tmp_path / HOLDER_FILE).write_text("")
        with (
            pytest.raises(FolderLocked, match="in use by another process"),
            hold_lock(tmp_path, "second"),
        ):
            pass


def test_what_a_holder_wrote_cannot_drive_a_terminal(tmp_path):
    with (
        hold_lock(tmp_path, "\x1b[2J tune\nmore"),
        pytest.raises(FolderLocked, match=r": .\[2J tune more\. Wait") as told,
        hold_lock(tmp_path, "second"),
    ):
        pass
    assert "\x1b" not in str(told.value)


def _leave_by_an_error(folder):
    try:
        with hold_lock(folder, "child"):
            pass
    except FolderLocked:
        return "busy"
    return "free"


def test_a_forked_child_finds_the_folder_busy_and_takes_nothing_away(tmp_path):
    with hold_lock(tmp_path, "parent"):
        with get_context("fork").Pool(1) as pool:
            assert pool.apply(_leave_by_an_error, (tmp_path,)) == "busy"
        assert (tmp_path / LOCK_FILE).exists()


def test_sweeping_leaves_the_lock(tmp_path):
    with hold_lock(tmp_path, "first"):
        assert remove_leftovers(tmp_path) == 0
        assert (tmp_path / LOCK_FILE).exists()


def test_two_folders_have_two_locks(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with hold_lock(tmp_path / "a", "first"), hold_lock(tmp_path / "b", "second"):
        pass


def test_a_folder_that_is_not_there_cannot_be_locked(tmp_path):
    with (
        pytest.raises(BadOutput, match="cannot be worked in: No such file or directory"),
        hold_lock(tmp_path / "none", "first"),
    ):
        pass


def test_a_lock_that_is_removed_while_it_is_opened_is_taken_anew(tmp_path, monkeypatch):
    """The holder may remove its file between another's opening and locking it."""
    real = os.open
    removed = []

    def opening(path, *rest):
        handle = real(path, *rest)
        if str(path).endswith(LOCK_FILE) and not removed:
            removed.append(path)
            Path(path).unlink()
        return handle

    monkeypatch.setattr(os, "open", opening)
    with hold_lock(tmp_path, "first"):
        assert removed
        assert (tmp_path / LOCK_FILE).exists()


def test_a_holder_file_that_is_a_link_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "elsewhere").write_text("precious")
    (tmp_path / HOLDER_FILE).symlink_to(tmp_path / "elsewhere")
    with hold_lock(tmp_path, "first"):
        assert not (tmp_path / HOLDER_FILE).is_symlink()
    assert (tmp_path / "elsewhere").read_text() == "precious"


def test_a_holder_file_that_cannot_be_written_is_reported_and_the_lock_released(tmp_path):
    (tmp_path / HOLDER_FILE).mkdir()
    with pytest.raises(BadOutput, match="cannot be written"), hold_lock(tmp_path, "first"):
        pass
    (tmp_path / HOLDER_FILE).rmdir()
    with hold_lock(tmp_path, "second"):
        (tmp_path / HOLDER_FILE).unlink()
        (tmp_path / HOLDER_FILE).mkdir()  # it is left, and the lock is released all the same
    assert [path.name for path in tmp_path.iterdir()] == [HOLDER_FILE]


def test_a_lock_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").write_text("precious")
    (tmp_path / LOCK_FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadOutput, match="cannot be worked in"), hold_lock(tmp_path, "first"):
        pass
    assert (tmp_path / "elsewhere").read_text() == "precious"

"""Files arrive whole or not at all, and paths stay where they belong."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ordinate.errors import BadInput, BadOutput
from ordinate.render import atomic_files
from ordinate.render.atomic_files import TEMPORARY_PREFIX, replace_file
from ordinate.tuning.experiment import safe_files
from ordinate.tuning.experiment.safe_files import (
    compute_digest,
    create_folder,
    hash_file,
    remove_leftovers,
    resolve_inside,
    write_json,
    write_text,
)

WRITER = """
import sys, time
from pathlib import Path
from ordinate.tuning.experiment.safe_files import {way}

with {way}(Path(sys.argv[1])) as temporary:
    file = temporary / "part.txt" if temporary.is_dir() else temporary
    file.write_text("half of wh")
    print("written", flush=True)
    time.sleep(600)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fail_after_writing(path: Path) -> None:
    path.write_text("half")
    raise RuntimeError("no more")


def killed_while_writing(way: str, path: Path) -> None:
    script = [sys.executable, "-c", WRITER.format(way=way), str(path)]
    with subprocess.Popen(script, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"written\n"
        writer.send_signal(signal.SIGKILL)
        assert writer.wait() == -signal.SIGKILL


# --- whole or not at all -------------------------------------------------------------------------


def test_a_file_is_there_when_it_is_whole(tmp_path):
    path = tmp_path / "deep" / "down" / "values.json"
    write_text(path, "äöü\n")
    assert path.read_bytes() == "äöü\n".encode()
    assert names(path.parent) == ["values.json"]


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "values.txt"
    write_text(path, "old")
    with replace_file(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".txt"
    assert path.read_text() == "new"
    assert names(tmp_path) == ["values.txt"]


def test_who_reads_the_old_file_meanwhile_reads_it_to_the_end(tmp_path):
    path = tmp_path / "values.txt"
    write_text(path, "old")
    with path.open() as reader:
        write_text(path, "new")
        assert reader.read() == "old"


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "values.txt"
    write_text(path, "old")
    with pytest.raises(RuntimeError, match="no more"), replace_file(path) as temporary:
        fail_after_writing(temporary)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["values.txt"]


def test_a_writer_killed_in_the_middle_leaves_the_old_file_and_a_leftover_to_sweep(tmp_path):
    path = tmp_path / "values.txt"
    write_text(path, "old")
    killed_while_writing("replace_file", path)
    assert path.read_text() == "old"
    assert len(names(tmp_path)) == 2
    assert remove_leftovers(tmp_path) == 1
    assert names(tmp_path) == ["values.txt"]


def test_a_folder_whose_writer_is_killed_is_not_there(tmp_path):
    killed_while_writing("create_folder", tmp_path / "models" / "best")
    (left,) = names(tmp_path / "models")
    assert left.startswith(TEMPORARY_PREFIX)
    assert remove_leftovers(tmp_path) == 1
    assert names(tmp_path / "models") == []


def test_files_get_the_permissions_that_the_user_set(tmp_path):
    mask = os.umask(0o027)
    try:
        write_text(tmp_path / "values.txt", "shared with the group")
    finally:
        os.umask(mask)
    assert (tmp_path / "values.txt").stat().st_mode & 0o777 == 0o640


def test_all_files_of_a_folder_reach_the_disk_before_the_rename(tmp_path, monkeypatch):
    seen = []
    path = tmp_path / "best"
    monkeypatch.setattr(
        safe_files, "sync_to_disk", lambda one: seen.append((one.name, path.exists()))
    )
    with create_folder(path) as temporary:
        (temporary / "parts").mkdir()
        (temporary / "parts" / "a.txt").write_text("a")
    assert seen == [
        ("a.txt", False),
        ("parts", False),
        (temporary.name, False),
        (tmp_path.name, True),
    ]


def test_a_file_reaches_the_disk_before_the_rename_and_its_name_after(tmp_path, monkeypatch):
    seen = []
    path = tmp_path / "best.txt"
    monkeypatch.setattr(
        atomic_files, "sync_to_disk", lambda one: seen.append((one.name, path.exists()))
    )
    with replace_file(path) as temporary:
        temporary.write_text("a")
    assert seen == [(temporary.name, False), (tmp_path.name, True)]


def test_a_folder_arrives_with_all_its_files(tmp_path):
    with create_folder(tmp_path / "best") as temporary:
        (temporary / "a.txt").write_text("a")
        assert not (tmp_path / "best").exists()
    assert names(tmp_path) == ["best"]
    assert (tmp_path / "best" / "a.txt").read_text() == "a"


def test_a_folder_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError, match="no more"), create_folder(tmp_path / "best") as new:
        fail_after_writing(new / "a.txt")
    assert names(tmp_path) == []


def test_a_folder_that_is_there_is_never_replaced(tmp_path):
    (tmp_path / "best").mkdir()
    with pytest.raises(BadOutput, match="best exists already"), create_folder(tmp_path / "best"):
        pass
    with pytest.raises(BadOutput, match="exists already"), create_folder(tmp_path / "new"):
        (tmp_path / "new").mkdir()  # by somebody else, meanwhile
    assert names(tmp_path) == ["best", "new"]


def test_what_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(BadOutput, match=r"file/below' cannot be written"):
        write_text(tmp_path / "file" / "below", "")
    with pytest.raises(BadOutput, match=r"folder' cannot be written: Is a directory"):
        write_text(tmp_path / "folder", "")
    assert names(tmp_path) == ["file", "folder"]


def test_json_keeps_every_digit_and_knows_no_nan(tmp_path):
    value = {"é": [0.1 + 0.2, 1e-300, None]}
    write_json(tmp_path / "values.json", value)
    text = (tmp_path / "values.json").read_text("utf-8")
    assert json.loads(text) == value
    assert "é" in text
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "values.json", {"x": float("nan")})
    assert json.loads((tmp_path / "values.json").read_bytes()) == value


# --- sweeping ------------------------------------------------------------------------------------


def test_sweeping_removes_leftovers_at_any_depth_and_nothing_else(tmp_path):
    outside = tmp_path / "outside"
    root = tmp_path / "root"
    for folder in (
        outside,
        root / "a" / f"{TEMPORARY_PREFIX}x" / "deep",
        root / "a" / f"{TEMPORARY_PREFIX}y",
    ):
        folder.mkdir(parents=True)
    for file in (
        outside / f"{TEMPORARY_PREFIX}kept",
        root / "a" / f"{TEMPORARY_PREFIX}z.db",
        root / "a" / "b",
    ):
        file.write_text("")
    (root / ".lock").write_text("")
    (root / f"{TEMPORARY_PREFIX}link").symlink_to(outside)
    (root / "link").symlink_to(outside)
    assert remove_leftovers(root) == 4
    assert names(root) == [".lock", "a", "link"]
    assert names(root / "a") == ["b"]
    assert names(outside) == [f"{TEMPORARY_PREFIX}kept"]
    assert remove_leftovers(root) == 0


# --- paths ---------------------------------------------------------------------------------------


def test_paths_below_the_folder_are_given_whole(tmp_path):
    assert resolve_inside(tmp_path) == tmp_path.resolve()
    assert resolve_inside(tmp_path, "models", "best") == tmp_path.resolve() / "models" / "best"
    assert resolve_inside(tmp_path, "models/../results") == tmp_path.resolve() / "results"
    assert resolve_inside(tmp_path, "..hidden", "a b") == tmp_path.resolve() / "..hidden" / "a b"


@pytest.mark.parametrize(
    "parts",
    [("..",), ("models", "..", "..", "x"), ("a/../../b",), ("models", "..")],
    ids=["up", "up-by-parts", "up-in-a-part", "the-folder-itself"],
)
def test_a_path_that_leaves_the_folder_is_refused(tmp_path, parts):
    with pytest.raises(BadInput, match="leaves the folder"):
        resolve_inside(tmp_path, *parts)


@pytest.mark.parametrize(
    "part", ["", ".", "/etc/passwd", "a\0b"], ids=["empty", "dot", "absolute", "nul"]
)
def test_what_is_no_name_is_refused(tmp_path, part):
    with pytest.raises(BadInput, match="no name of a file or folder inside"):
        resolve_inside(tmp_path, "models", part)


def test_a_link_that_leads_out_is_refused_and_one_that_stays_is_followed(tmp_path):
    root = tmp_path / "root"
    (root / "real").mkdir(parents=True)
    (root / "out").symlink_to(tmp_path)
    (root / "alias").symlink_to(root / "real")
    (root / "loop").symlink_to(root / "loop")
    (tmp_path / "root-2").mkdir()
    (root / "sibling").symlink_to(tmp_path / "root-2")  # whose name begins like the root's
    assert resolve_inside(root, "alias", "x") == root.resolve() / "real" / "x"
    for name in ("out", "sibling"):
        with pytest.raises(BadInput, match="leaves the folder"):
            resolve_inside(root, name, "x")
    with pytest.raises(BadInput, match="'loop' cannot be opened"):
        resolve_inside(root, "loop")


def test_a_root_that_is_itself_a_link_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    assert resolve_inside(tmp_path / "alias", "x") == (tmp_path / "real").resolve() / "x"


# --- hashes --------------------------------------------------------------------------------------


def test_the_hash_of_a_file_is_that_of_its_bytes(tmp_path):
    (tmp_path / "abc").write_bytes(b"abc")
    # FIPS 180-2, appendix B.1
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert hash_file(tmp_path / "abc", chunk_size=2) == expected


def test_a_digest_depends_on_values_and_not_on_the_order_of_keys():
    assert compute_digest({"a": 1, "b": [2]}) == compute_digest({"b": [2], "a": 1})
    assert compute_digest({"a": 1}) != compute_digest({"a": 2})
    assert compute_digest([1, 2]) != compute_digest([2, 1])
    assert len(compute_digest("x", 64)) == 64
    assert compute_digest("\udc80é")  # any text that a file may hold
    with pytest.raises(ValueError, match="not JSON compliant"):
        compute_digest(float("nan"))

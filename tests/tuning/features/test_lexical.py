import importlib
import json
import unicodedata

import numpy as np
import pytest
from extractor_promises import check_promises

from ordinate.errors import BadInput, BadOption, BadStore, MissingExtra
from ordinate.tuning.experiment.manifest import Manifest
from ordinate.tuning.features.extractor import Items, create_extractor
from ordinate.tuning.features.lexical import FittedLexical, Lexical
from ordinate.tuning.features.tokenization import (
    compute_moving_ttr,
    count_sentences,
    insert_spaces,
    split_words,
)

TEXTS = (
    "I don't know. It’s a lovely house, isn't it? We went running.",
    "",
    "Notwithstanding extraordinary perspicacity, epistemological conundrums proliferate.",
    "\x00\x01 cat\x7f dog \x1b[31m",
    "?! ...",
)


def fitted(language="en"):
    return Lexical(language).fit(Items(0, ()), lambda _: None)


def features(text, language="en"):
    extractor = fitted(language)
    row = extractor.rows(Items(1, (text,)))[0]
    assert np.isfinite(row).all()
    return dict(zip(extractor.names, row.tolist(), strict=True))


def test_sizes_are_what_a_reader_counts():
    found = features("The cat sat. It slept 3 hours!")
    sizes = ("letters", "words", "sentences", "words_per_sentence")
    assert [found[name] for name in sizes] == [22, 7, 2, 3.5]
    assert found["letters_per_word"] == pytest.approx(22 / 7)
    assert found["log_words"] == pytest.approx(np.log(7))


def test_type_token_ratios_by_their_formulas():
    found = features("The dog saw the cat")  # 4 types of 5 words
    assert found["ttr"] == pytest.approx(4 / 5)
    assert found["root_ttr"] == pytest.approx(4 / np.sqrt(5))
    assert found["log_ttr"] == pytest.approx(np.log(4) / np.log(5))
    assert found["moving_ttr_50"] == pytest.approx(4 / 5)


@pytest.mark.parametrize(
    ("n", "window"), [(1, 50), (49, 50), (50, 50), (51, 50), (300, 50), (9, 1)]
)
def test_moving_ratio_is_the_mean_over_all_windows(n, window):
    words = [str(k) for k in np.random.default_rng(n).integers(0, 30, n)]
    size = min(window, n)
    ratios = [len(set(words[k : k + size])) / size for k in range(n - size + 1)]
    assert compute_moving_ttr(words, window) == pytest.approx(np.mean(ratios), rel=1e-12)


def test_frequencies_are_those_of_wordfreq():
    from wordfreq import zipf_frequency

    found = features("the the cat perspicacity qqxqzz")
    known = [zipf_frequency(word, "en") for word in ("the", "the", "cat", "perspicacity")]
    assert found["zipf_mean"] == pytest.approx(np.mean(known))
    assert found["zipf_median"] == pytest.approx(np.median(known))
    assert found["zipf_sd"] == pytest.approx(np.std(known))
    assert found["zipf_rare"] == pytest.approx(2 / 5)  # an unknown word is rare as well
    assert found["zipf_unknown"] == pytest.approx(1 / 5)


def test_levels_of_words_are_those_of_cefrpy_and_contractions_are_undone():
    from cefrpy import CEFRAnalyzer

    levels = [CEFRAnalyzer().get_average_word_level_float(word) for word in ("do", "house", "will")]
    found = features("Don’t house won't qqxqzz")
    assert found["cefr_mean"] == pytest.approx(np.mean(levels))
    assert found["cefr_unknown"] == pytest.approx(1 / 4)
    shares = [found[f"cefr_{level}"] for level in ("a1", "a2", "b1", "b2", "c1", "c2")]
    assert sum(shares) == pytest.approx(3 / 4)
    assert found["cefr_a1"] == pytest.approx(sum(round(level) == 1 for level in levels) / 4)


def test_half_a_level_goes_up_whichever_level_it_is():
    from cefrpy import CEFRAnalyzer

    levels = [CEFRAnalyzer().get_average_word_level_float(word) for word in ("in", "time", "oh")]
    assert levels == [1.5, 2.5, 4.5]
    found = features("in time oh")
    assert [found[f"cefr_{level}"] for level in ("a2", "b1", "c1")] == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("word", ["o'clock", "ain't", "y'all", "d’you", "rock'n'roll"])
def test_what_is_no_contraction_of_a_known_word_is_unknown(word):
    assert features(word)["cefr_unknown"] == 1.0


@pytest.mark.parametrize(
    ("word", "base"),
    [
        *(("she's", "she"), ("They’re", "they"), ("I've", "i"), ("we'll", "we"), ("you'd", "you")),
        *(("I'm", "i"), ("doesn't", "does"), ("shan't", "shall"), ("can’t", "can")),
    ],
)
def test_contractions_have_the_level_of_their_word(word, base):
    assert features(base)["cefr_unknown"] == 0.0
    assert features(word)["cefr_mean"] == features(base)["cefr_mean"]


@pytest.mark.parametrize("word", ["wirtschaftswissenschaften", "w" * 25])
def test_a_word_that_cefrpy_cannot_look_up_is_unknown_and_ends_nothing(word):
    assert features(word)["cefr_unknown"] == 1.0
    assert features(f"the cat {word}")["cefr_mean"] == features("the cat")["cefr_mean"]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "All human beings are born free and equal in dignity and rights."),
        ("de", "Ich habe gesung, Wir wolen mit dem Bus eine Raise machen am Wochenende."),
        ("fr", "Tous les êtres humains naissent libres et égaux en dignité et en droits."),
        ("nb", "Alle mennesker er født frie og med samme menneskeverd og rettigheter."),
        ("da", "Alle mennesker er født frie og lige i værdighed og rettigheder."),
        ("uk", "Всі люди народжуються вільними і рівними у своїй гідності та правах."),
        ("fa", "تمام افراد بشر آزاد به دنیا می‌آیند و از لحاظ حیثیت و حقوق با هم برابرند."),
        ("zh", "人人生而自由，在尊严和权利上一律平等。"),
    ],
)
def test_the_language_is_that_whose_words_are_there(language, text):
    found, (note,) = Lexical().complete(lambda: ["", "12 3", text])
    assert (found, f"is {language!r}" in note) == (Lexical(language), True)
    assert Lexical("it").complete(lambda: [text]) == (Lexical("it"), ())


@pytest.mark.parametrize(
    "texts",
    [
        *([], ["", "2020 ?!"], ["xk qzj vvw plorm tsk"]),
        ["Kõik inimesed sünnivad vabadena ja võrdsetena oma väärikuselt ja õigustelt."],
        ["Tous les êtres humains naissent libres.", "Alle Menschen sind frei und gleich."],
    ],
    ids=["none", "no-words", "noise", "estonian", "two-languages"],
)
def test_a_language_that_is_not_sure_is_asked_for(texts):
    with pytest.raises(BadInput, match=r"is not sure.* one of ar, bg, .*, zh, name it"):
        Lexical().complete(lambda: texts)


def test_numbers_have_no_level_and_are_not_unknown():
    found, plain = features("the cat 25 ٣"), features("the cat")
    levels = [name for name in found if name.startswith("cefr")]
    assert [found[name] for name in levels] == [plain[name] for name in levels]
    assert found["words"] == 4
    assert not any(features("5 12 2020")[name] for name in levels)


def test_letters_and_their_marks_are_one_however_they_are_written():
    whole = "A naïve café, another cafe\u0301."
    assert features(whole) == features(unicodedata.normalize("NFD", whole))
    assert features(whole)["ttr"] == pytest.approx(4 / 5)


def test_readability_is_that_of_textstat():
    import textstat

    found = features(TEXTS[0])
    for measure in ("lix", "rix", "automated_readability_index", "coleman_liau_index"):
        assert found[measure] == getattr(textstat, measure)(TEXTS[0])


def test_nothing_is_downloaded(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a download")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("nltk.download", refuse)
    features("Some perfectly ordinary English sentence that nobody has counted before.")


def test_texts_without_words_have_rows_of_zeros():
    rows = fitted().rows(Items(len(TEXTS), TEXTS))
    assert (~rows.any(axis=1)).tolist() == [False, True, False, False, True]
    assert fitted().rows(Items(0, ())).shape == (0, len(fitted().names))


def test_a_row_is_the_same_whatever_stands_beside_it():
    items, extractor = Items(len(TEXTS), TEXTS), fitted()
    apart = [extractor.rows(items.slice_rows(k, k + 1)) for k in range(len(TEXTS))]
    assert np.array_equal(np.concatenate(apart), fitted().rows(items))


def test_arabic_words_keep_their_marks_and_sentences_end_with_their_own_marks():
    text = "هَذَا بَيْتٌ جَمِيل. هل تحب القهوة؟ نعم"
    assert len(split_words(text)) == 7
    assert count_sentences(text) == 3
    found = features(text, "ar")
    assert found["words"] == 7
    assert found["zipf_unknown"] == 0.0
    assert not any(name.startswith("cefr") for name in found)


@pytest.mark.parametrize(
    ("language", "text", "words", "sentences"),
    [
        ("zh", "今天天气很好。我们去公园。", 11, 2),
        ("ja", "今日は天気。", 5, 1),
        ("ko", "오늘 날씨.", 2, 1),
    ],
)
def test_scripts_without_spaces_need_no_segmenter(language, text, words, sentences):
    found = features(text, language)
    assert (found["words"], found["sentences"]) == (words, sentences)
    assert found["zipf_unknown"] < 1.0


def test_languages_of_one_letter_are_looked_up_as_they_stand():
    from wordfreq import freq_to_zipf, get_frequency_dict

    assert features("好", "zh")["zipf_mean"] == freq_to_zipf(get_frequency_dict("zh")["好"])


def test_readability_sees_words_where_no_spaces_are():
    assert features("今天天气很好。我们去公园。", "zh")["lix"] == pytest.approx(11 / 2)
    assert insert_spaces(TEXTS[0]) == TEXTS[0]


@pytest.mark.parametrize(
    "text",
    [
        "The quick brown fox jumps over the lazy dog. " * 22_000,
        "x" * 1_000_000,
        "." * 1_000_000 + "x",
        "a'" * 500_000,
        "\n" * 1_000_000 + "x",
    ],
    ids=["sentences", "one-word", "dots", "apostrophes", "lines"],
)
def test_a_megabyte_of_anything_is_counted(text):
    found = features(text)
    assert found["words"] == max(1, 9 * text.count("fox"))
    assert found["sentences"] == max(1, text.count("fox"))


def test_an_unknown_language_is_refused_with_those_that_are_known():
    with pytest.raises(BadOption, match=r"language 'english', but for ar, bg, .*, zh"):
        fitted("english")


def test_a_missing_library_names_the_extra(monkeypatch):
    def without(name):
        if name == "textstat":
            raise ImportError(name)
        return importlib.import_module(name)

    monkeypatch.setattr("ordinate.tuning.features.extractor.import_module", without)
    with pytest.raises(MissingExtra, match=r"textstat.*pip install 'ordinate\[features\]'"):
        fitted()


def test_sets_are_equal_however_they_were_made(tmp_path, monkeypatch):
    experiment, name = check_promises(Lexical(), FittedLexical, tmp_path, monkeypatch)
    config = Manifest.read(experiment.features_dir / name / "train").config
    assert config["counts"] == {"empty_texts": 1, "zero_rows": 1}


def test_names_of_sets_and_commands_say_the_language():
    assert (Lexical().title, Lexical().arguments) == ("lexical", [])
    assert (Lexical("de").title, Lexical("de").arguments) == ("lexical-de", ["--language", "de"])
    assert create_extractor("lexical", Lexical("de").parameters, None) == Lexical("de")


def test_what_is_saved_is_found_again_unless_features_have_changed(tmp_path):
    fitted().save(tmp_path)
    assert Lexical("en").load(tmp_path).names == fitted().names
    (tmp_path / "state.json").write_text(json.dumps({"names": ["other"]}))
    with pytest.raises(BadStore, match="another version"):
        Lexical().load(tmp_path)
    (tmp_path / "state.json").write_text("[]")
    with pytest.raises(BadStore, match=r"state\.json: it must be an object"):
        Lexical().load(tmp_path)

"""TF-IDF: the numbers of scikit-learn, group by group, from a state that is no pickle."""

import unicodedata

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from ordinate.errors import BadInput, BadOption, BadStore
from ordinate.tuning.features.extractor import Items, create_extractor, default_name
from ordinate.tuning.features.tfidf import Tfidf
from ordinate.tuning.features.tokenization import split_words

WORDS = {"tokenizer": split_words, "token_pattern": None}

TEXTS = (
    "The cat sat on the mat. I saw it.",
    "the dog and the cat and I",
    "",
    "rain fell on the old town, and the dog ran",
    "你好 世界 the cat",
)
NEW = ("the cat and the zebra", "", "nothing known here", "THE DOG")


def items(texts, groups=None):
    columns = {} if groups is None else {"topic": tuple(groups)}
    return Items(len(texts), tuple(texts), None, columns)


def fitted(extractor, texts=TEXTS, groups=None):
    return extractor.fit(items(texts, groups), lambda _: None)


def same(first, second):
    return (
        first.shape == second.shape
        and np.array_equal(first.indptr, second.indptr)
        and np.array_equal(first.indices, second.indices)
        and np.array_equal(first.data, second.data)
    )


@pytest.mark.parametrize(
    ("extractor", "peer"),
    [
        (Tfidf(), {"ngram_range": (1, 2), "min_df": 2, **WORDS}),
        (
            Tfidf(analyzer="char", ngrams=(1, 3), min_df=1),
            {"analyzer": "char", "ngram_range": (1, 3)},
        ),
        (
            Tfidf(analyzer="char_wb", min_df=0.3, max_df=0.7),
            {"analyzer": "char_wb", "ngram_range": (2, 4), "min_df": 0.3, "max_df": 0.7},
        ),
        (
            Tfidf(ngrams=(1, 1), min_df=1, max_df=2, lowercase=False),
            {"min_df": 1, "max_df": 2, "lowercase": False, **WORDS},
        ),
    ],
    ids=["word", "char", "char_wb", "case"],
)
@pytest.mark.parametrize("sublinear", [True, False], ids=["sublinear", "linear"])
def test_rows_are_those_of_scikit_learn_to_the_last_bit(extractor, peer, sublinear):
    extractor = Tfidf(**{**extractor.__dict__, "sublinear": sublinear})
    other = TfidfVectorizer(sublinear_tf=sublinear, **peer).fit(TEXTS)
    found = fitted(extractor)
    assert found.names == tuple(other.get_feature_names_out())
    assert same(found.rows(items(TEXTS)), other.transform(TEXTS))
    assert same(found.rows(items(NEW)), other.transform(NEW))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("كَتَبَ الوَلَدُ", ("الوَلَدُ", "كَتَبَ")),
        ("हिन्दी भाषा", ("भाषा", "हिन्दी")),
        ("今天很好", ("今", "天", "好", "很")),
        ("I don't, you don’t: rock_roll", ("don't", "don’t", "i", "rock", "roll", "you")),
    ],
    ids=["arabic", "devanagari", "chinese", "english"],
)
def test_words_of_all_scripts_stay_whole(text, words):
    assert fitted(Tfidf(ngrams=(1, 1), min_df=1), (text,)).names == words


@pytest.mark.parametrize("analyzer", ["word", "char", "char_wb"])
@pytest.mark.parametrize("lowercase", [True, False], ids=["lower", "case"])
def test_letters_and_their_marks_are_one_however_they_are_written(analyzer, lowercase):
    whole = ("Das café ist naïve", "été: CAFÉ")
    apart = tuple(unicodedata.normalize("NFD", text) for text in whole)
    assert whole != apart
    extractor = Tfidf(analyzer=analyzer, min_df=1, lowercase=lowercase)
    found, other = fitted(extractor, whole), fitted(extractor, apart)
    assert found.names == other.names
    assert same(found.rows(items(whole)), other.rows(items(apart)))
    assert same(found.rows(items(whole)), found.rows(items(apart)))


def test_the_version_is_part_of_what_a_set_was_asked_for_with():
    parameters = Tfidf(min_df=1).parameters
    assert create_extractor("tfidf", parameters, None) == Tfidf(min_df=1)
    earlier = {name: value for name, value in parameters.items() if name != "version"}
    with pytest.raises(BadStore, match="another version of Ordinate, whose tfidf made other rows"):
        create_extractor("tfidf", earlier, None)


def test_the_most_frequent_ngrams_stay_and_equals_by_the_alphabet():
    found = fitted(Tfidf(ngrams=(1, 1), min_df=1, max_features=3), ("b b b c", "a c d", "d e"))
    assert found.names == ("b", "c", "d")
    equal = fitted(Tfidf(ngrams=(1, 1), min_df=1, max_features=2), ("d c", "b a"))
    assert equal.names == ("a", "b")


@pytest.mark.parametrize("groups", [None, ("x", "y", "x", "y", None)], ids=["whole", "grouped"])
def test_a_state_gives_the_same_rows_when_it_is_read_again(tmp_path, groups):
    extractor = Tfidf(min_df=1, group_by=None if groups is None else "topic")
    before = fitted(extractor, groups=groups)
    before.save(tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".npz"}
    after = extractor.load(tmp_path)
    assert after.names == before.names
    assert same(before.rows(items(TEXTS, groups)), after.rows(items(TEXTS, groups)))


def test_a_damaged_state_is_refused(tmp_path):
    extractor = Tfidf(min_df=1)
    fitted(extractor).save(tmp_path)
    np.savez(tmp_path / "idf.npz", idf_0=np.ones(1))
    with pytest.raises(BadStore, match="other numbers of n-grams"):
        extractor.load(tmp_path)
    np.savez(tmp_path / "idf.npz", idf_0=np.array([{}], object))
    with pytest.raises(BadStore, match=r"idf\.npz cannot be read"):
        extractor.load(tmp_path)


def test_an_empty_text_has_a_row_of_zeros():
    rows = fitted(Tfidf(min_df=1)).rows(items(NEW))
    assert rows.shape[0] == len(NEW)
    assert [rows[k].nnz for k in (1, 2)] == [0, 0]


def test_each_group_has_features_and_weights_of_its_own():
    extractor = Tfidf(ngrams=(1, 1), min_df=1, group_by="topic")
    texts, groups = ("a b", "a c", "a a", "b"), ("x", "x", "y", "y")
    found = fitted(extractor, texts, groups)
    assert found.names == ("x:a", "x:b", "x:c", "y:a", "y:b")
    rows = found.rows(items(texts[::-1], groups[::-1])).toarray()[::-1]
    for group in ("x", "y"):
        there = [k for k, one in enumerate(groups) if one == group]
        own = [texts[k] for k in there]
        peer = TfidfVectorizer(sublinear_tf=True, **WORDS).fit(own)
        columns = [k for k, name in enumerate(found.names) if name.startswith(group)]
        assert np.array_equal(rows[np.ix_(there, columns)], peer.transform(own).toarray())
        others = [k for k in range(len(found.names)) if k not in columns]
        assert not rows[np.ix_(there, others)].any()


def test_groups_that_training_lacks_have_rows_of_zeros_and_are_counted():
    found = fitted(Tfidf(min_df=1, group_by="topic"), ("a b", "c"), ("x", None))
    assert found.names == ("x:a", "x:a b", "x:b")
    new = items(("a", "a", "a"), ("x", "z", None))
    assert found.count_oddities(new) == {"without_group": 1, "unknown_group": 1}
    assert np.diff(found.rows(new).indptr).tolist() == [1, 0, 0]


def test_names_of_features_stay_apart_whatever_groups_are_called():
    extractor = Tfidf(analyzer="char", ngrams=(1, 3), min_df=1, group_by="topic")
    found = fitted(extractor, ("b:c", "c", "c"), ("a", "a:b", "a\\:b"))
    assert len(set(found.names)) == len(found.names)


def test_a_group_without_features_has_rows_of_zeros():
    found = fitted(Tfidf(group_by="topic"), ("a b", "a b", "c"), ("x", "x", "y"))
    assert found.names == ("x:a", "x:a b", "x:b")
    new = items(("c", "a"), ("y", "x"))
    assert found.count_oddities(new)["unknown_group"] == 0
    assert np.diff(found.rows(new).indptr).tolist() == [0, 1]


def test_texts_without_any_feature_are_an_error():
    with pytest.raises(BadInput, match="No n-gram of the 2 training texts can be a feature"):
        fitted(Tfidf(), ("one", "two"))


def test_a_text_of_a_megabyte_is_one_row_and_no_name_is_that_long():
    long = "abcdefghij" * 100_000
    found = fitted(Tfidf(), (long, f"{long} cat", "the cat"))
    assert found.names == ("cat",)
    assert found.rows(items((long, "cat"))).nnz == 1


def test_names_tell_what_differs_from_the_defaults():
    assert default_name(Tfidf()) == "tfidf-word"
    assert default_name(Tfidf(analyzer="char_wb", ngrams=(2, 4))) == "tfidf-char-wb"
    assert default_name(Tfidf(group_by="first language")) == "tfidf-word-by-first-language"
    changed = {default_name(Tfidf(min_df=k)) for k in (1, 2, 3)}
    assert len(changed) == 3
    assert all(name.startswith("tfidf-word") for name in changed)


def test_the_arguments_say_what_differs_from_the_defaults():
    assert Tfidf().arguments == Tfidf(ngrams=(1, 2)).arguments == []
    extractor = Tfidf(
        "char", (1, 3), 1, 0.9, None, sublinear=False, lowercase=False, group_by="a b"
    )
    assert extractor.arguments == [
        *("--analyzer", "char", "--ngrams", "1..3", "--min-df", "1", "--max-df", "0.9"),
        *("--max-features", "all", "--linear", "--keep-case", "--group-by", "a b"),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"analyzer": "letters"}, "no analyzer 'letters'"),
        ({"ngrams": (2, 1)}, r"not 2\.\.1"),
        ({"min_df": 0}, "min_df is a number of texts"),
        ({"max_df": 1.5}, "max_df is a number of texts"),
        ({"max_features": 0}, "max_features is 1 or more"),
        ({"min_df": 5, "max_df": 2}, r"in 5 texts at least \(min_df\) and in 2 at most"),
        ({"min_df": 0.5, "max_df": 0.2}, r"in 0\.5 texts at least"),
    ],
    ids=["analyzer", "ngrams", "min_df", "max_df", "max_features", "numbers", "shares"],
)
def test_parameters_that_make_no_sense_are_refused(options, message):
    with pytest.raises(BadOption, match=message):
        Tfidf(**options)

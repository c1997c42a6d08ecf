"""Short names of models: feature set and type, with digits of the hash only where needed."""

from ordinate.render import Document, Grid, text
from ordinate.tuning.experiment.model_names import shorten_model_names, use_short_names

A, B, C = "0123456789ab", "0123ffffffff", "ba9876543210"


def test_models_of_one_set_and_type_are_told_apart_by_digits_of_their_hash():
    short = shorten_model_names([f"tfidf-word-ridge-{A}", f"tfidf-word-ridge-{C}", f"vote-{A}"])
    assert [*short.values()] == ["tfidf-word/ridge-0123", "tfidf-word/ridge-ba98", "vote"]


def test_hashes_that_begin_alike_are_shown_whole():
    names = [f"tfidf-ridge-{A}", f"tfidf-ridge-{B}"]
    assert [*shorten_model_names(names).values()] == [f"tfidf/ridge-{A}", f"tfidf/ridge-{B}"]


def test_a_name_that_is_no_models_stays_and_is_never_taken_twice():
    names = ["tfidf/ridge", f"tfidf-ridge-{A}", "by-hand", "ridge-0123"]
    short = shorten_model_names(names)
    assert short == {name: name for name in names} | {names[1]: "tfidf/ridge-0123"}


def test_a_report_has_short_names_everywhere_and_the_full_ones_among_its_details():
    name = f"tfidf-ridge-{A}"
    grid = Grid(f"Of {name}", ("metric", name), ((name, 0.5),), optional=(name,))
    inner = Document("Inner", (f"{name} again.",), f"{name} leads.", (f"Read from {name}.",))
    document = use_short_names(Document(name, (grid, inner), f"{name} wins."), [name, "by hand"])
    narrow = text.render(document, 80, details=False)
    assert name not in narrow
    assert narrow.count("tfidf/ridge") == 8
    assert name in text.render(document)

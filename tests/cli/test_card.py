"""`ordinate card`: a page on the winner of a search."""

import json

import pytest
from command import run


def test_the_card_is_a_report(tuned_table, tmp_path):
    data, root, _ = tuned_table
    use, page = tmp_path / "use.txt", tmp_path / "card.html"
    use.write_text("\ufeffDensities of pure alkanes.")
    ran = run("card", "-e", root, "--intended-use", use, "-o", page)
    assert (ran.code, ran.err) == (0, "")
    assert "Intended use: Densities of pure alkanes." in page.read_text()
    ran = run("card", "-e", root, "--format", "json", "--by", "a", "--table", data)
    assert (ran.code, json.loads(ran.out)["task"]) == (0, "card")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--intended-use", "absent.txt"), "'absent.txt' cannot be read: No such file"),
        (("--intended-use", "bytes.txt"), "'bytes.txt' cannot be read: it is no UTF-8 text."),
        (("--by", "zzz", "--table", "{data}"), "zzz"),
        (("--by", "a", "--table", "other.csv"), "is not what the model was tested on"),
    ],
)
def test_one_message_for_whatever_is_wrong(tuned_table, here, flags, said):
    data, root, _ = tuned_table
    (here / "bytes.txt").write_bytes(b"\xff\xfe\xff")
    (here / "other.csv").write_text("a,y\n1,2\n2,3\n")
    ran = run("card", "-e", root, *(flag.format(data=data) for flag in flags))
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1

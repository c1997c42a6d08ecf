"""`ordinate features`: texts in, feature sets out."""

import argparse
from typing import TYPE_CHECKING, Any

from ordinate.cli.experiment import add_experiment, opened
from ordinate.cli.options import Help, add_output, reported
from ordinate.errors import BadOption

if TYPE_CHECKING:
    from ordinate.tune.features import Made
    from ordinate.tune.features.tfidf import Tfidf

EXAMPLES = """examples:
  ordinate features tfidf -e DIR
  ordinate features tfidf -e DIR --analyzer char --ngrams 2..5 --max-features 50000
  ordinate features tfidf -e DIR --group-by topic --min-df 1
  ordinate features list -e DIR

exit codes: 0 done, 1 internal error, 2 bad input, 130 interrupted
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "features",
        help="make feature sets of the texts of an experiment",
        description="Make a feature set for every training and test set of an experiment, fitted "
        "on the training data alone. A set that is there is not made again, nor overwritten; a "
        "killed run is taken up by the same command.",
        epilog=EXAMPLES,
        formatter_class=Help,
        allow_abbrev=False,
    )
    makers = parser.add_subparsers(dest="maker", metavar="MAKER", required=True)
    _add_tfidf(makers)
    _add_list(makers)


def _added(makers: Any, name: str, what: str) -> Any:
    parser = makers.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
    parser.allow_abbrev = False
    add_experiment(parser)
    return parser


def _add_making(parser: Any) -> None:
    add = parser.add_argument
    add("--name", help="of the set (default: by maker and parameters)")
    add("--batch", type=int, metavar="N", help="rows that are made and kept at once")
    add_output(parser)


# --- makers ---------------------------------------------------------------------------------------


def _add_tfidf(makers: Any) -> None:
    parser = _added(makers, "tfidf", "TF-IDF of n-grams of words or letters, sparse")
    add = parser.add_argument
    add(
        "--analyzer",
        choices=("word", "char", "char_wb"),
        default="word",
        help="n-grams of words, of letters, or of letters within words (default: word)",
    )
    add("--ngrams", metavar="N..M", help="their lengths (default: 1..2 words, 2..4 letters)")
    add("--min-df", metavar="N", default="2", help="texts, or share, at least (default: 2)")
    add("--max-df", metavar="N", default="1.0", help="texts, or share, at most (default: 1.0)")
    add(
        "--max-features",
        metavar="N",
        default="200000",
        help="the most frequent stay, or all (default: 200000)",
    )
    add("--linear", action="store_true", help="count n-grams as they are, without logarithm")
    add("--keep-case", action="store_true", help="tell upper from lower case")
    add("--group-by", metavar="COL", help="a vectoriser of its own for each value of a column")
    _add_making(parser)
    parser.set_defaults(run=lambda options: _run(options, _tfidf))


def _tfidf(options: argparse.Namespace) -> "Tfidf":
    from ordinate.tune.features.tfidf import Tfidf

    all_of_them = options.max_features == "all"
    return Tfidf(
        analyzer=options.analyzer,
        ngrams=None if options.ngrams is None else _span("--ngrams", options.ngrams),
        min_df=_bound("--min-df", options.min_df),
        max_df=_bound("--max-df", options.max_df),
        max_features=None if all_of_them else _whole("--max-features", options.max_features),
        sublinear=not options.linear,
        lowercase=not options.keep_case,
        group_by=options.group_by,
    )


def _run(options: argparse.Namespace, maker: Any) -> int:
    reported(options, [], lambda: _made(options, maker(options)))
    return 0


def _made(options: argparse.Namespace, maker: Any) -> "Made":
    from ordinate.cli.progress import ticking
    from ordinate.tune.features import make

    with ticking("making features") as tick:
        return make(opened(options), maker, options.name, batch=options.batch, tick=tick)


def _add_list(makers: Any) -> None:
    parser = _added(makers, "list", "feature sets with sizes, zeros and how they were made")
    add_output(parser)
    parser.set_defaults(run=_list)


def _list(options: argparse.Namespace) -> int:
    from ordinate.tune.features import listed

    reported(options, [], lambda: listed(opened(options)))
    return 0


# --- numbers --------------------------------------------------------------------------------------


def _whole(option: str, text: str) -> int:
    try:
        return int(text.replace("_", ""))
    except ValueError:
        raise BadOption(f"{option} takes a whole number, not {text!r}.") from None


def _bound(option: str, text: str) -> float:
    """Return a number of texts, or a share where there is a point in it."""
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        raise BadOption(f"{option} takes a number such as 2, or a share such as 0.01.") from None


def _span(option: str, text: str) -> tuple[int, int]:
    low, dots, high = text.partition("..")
    first = _whole(option, low)
    return first, _whole(option, high) if dots else first

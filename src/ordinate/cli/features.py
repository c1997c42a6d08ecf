"""`ordinate features`: texts in, feature sets out."""

import argparse
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ordinate.cli.flags import InputPath, add_flags, collect_given
from ordinate.cli.options import (
    add_command,
    add_experiment_options,
    add_folder_option,
    add_output_options,
    open_experiment,
    write_report,
)
from ordinate.errors import BadOption

if TYPE_CHECKING:
    from ordinate.tuning.experiment.folder import Experiment
    from ordinate.tuning.features import ExtractionResult, FeatureExtractor

    ExtractorMaker = Callable[[argparse.Namespace, Experiment], FeatureExtractor]

# Those whose flags are their settings, and what they take: a summary, and more for their help.
PLAIN_EXTRACTORS = {
    "lexical": (
        "length, word frequency, variety and readability, and for English CEFR levels of words",
        "Takes wordfreq, cefrpy and textstat: pip install 'ordinate[features]'.",
    ),
    "embeddings": (
        "embeddings of whole texts by a model of sentence-transformers",
        (
            "Texts that are longer than the model takes are read in windows, whose mean is taken. "
            "Nothing is downloaded. Takes sentence-transformers: pip install 'ordinate[features]'."
        ),
    ),
    "perplexity": (
        "how much the tokens of a text surprise a causal language model",
        "Nothing is downloaded. Takes transformers: pip install 'ordinate[features]'.",
    ),
}
EXAMPLES = {  # of each extractor, the first of them in the help of all
    "tfidf": """
  ordinate features tfidf -e DIR
  ordinate features tfidf -e DIR --analyzer char --ngrams 2..5 --max-features 50000
  ordinate features tfidf -e DIR --group-by topic --min-df 1
""",
    "lexical": """
  ordinate features lexical -e DIR
  ordinate features lexical -e DIR --language de
""",
    "embeddings": """
  ordinate features embeddings -e DIR
  ordinate features embeddings -e DIR --model-path models/minilm --overlap 64
""",
    "perplexity": """
  ordinate features perplexity -e DIR --model-path models/gpt2
  ordinate features perplexity -e DIR --model-path models/gpt2 --window 512 --stride 128
""",
    "concat": """
  ordinate features concat -e DIR lexical tfidf-word
  ordinate features concat -e DIR lexical tfidf-word --name both
""",
    "external": """
  ordinate features external -e DIR features.csv
  ordinate features external -e DIR syntax.parquet --drop writer --drop topic
  ordinate features external -e DIR tables --name mine
""",
    "list": """
  ordinate features list -e DIR
""",
}


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "features",
        "Make a feature set for every training and test set of an experiment, fitted "
        "on the training data alone. A set that is there is not made again, nor overwritten; a "
        "killed run is taken up by the same command.",
        _format_epilog(*(lines.splitlines()[1] for lines in EXAMPLES.values())),
    )
    add_folder_option(parser, required=False)  # before the extractor, or after it
    extractors = parser.add_subparsers(dest="extractor", metavar="EXTRACTOR", required=True)
    _add_tfidf(extractors)
    for name, (summary, more) in PLAIN_EXTRACTORS.items():
        extractor = _import_extractor(name)
        plain = _add_extractor(extractors, name, partial(_make_extractor, extractor), summary, more)
        add_flags(plain, extractor)
    _add_concat(extractors)
    _add_external(extractors)
    listed = _add_parser(
        extractors, "list", "feature sets with sizes, zeros and how they were made"
    )
    add_output_options(listed)
    listed.set_defaults(run=_run_list)


def _format_epilog(*lines: str) -> str:
    return "\n".join(["examples:", *lines, ""])


def _add_parser(extractors: Any, name: str, what: str, more: str = "") -> argparse.ArgumentParser:
    description = f"{what[0].upper()}{what[1:]}. {more}".strip()
    epilog = _format_epilog(*EXAMPLES[name].strip("\n").splitlines())
    parser = add_command(extractors, name, description, epilog, what)
    add_experiment_options(parser, required=False, default=argparse.SUPPRESS)
    return parser


def _add_extractor(
    extractors: Any, name: str, make: "ExtractorMaker", what: str, more: str = ""
) -> argparse.ArgumentParser:
    """Add a subcommand that makes a feature set, and return its parser."""
    parser = _add_parser(extractors, name, what, more)
    add = parser.add_argument
    add("--name", help="of the set (default: by extractor and parameters)")
    add("--batch", type=int, metavar="N", help="rows that are made and kept at once")
    add_output_options(parser)
    parser.set_defaults(run=lambda options: _run_extraction(options, make), resumes=True)
    return parser


def _import_extractor(name: str) -> Any:
    """Return the class of an extractor, which has the name of its module."""
    return getattr(import_module(f"ordinate.tuning.features.{name}"), name.capitalize())


def _make_extractor(
    extractor: Any, options: argparse.Namespace, _: "Experiment"
) -> "FeatureExtractor":
    found: FeatureExtractor = extractor(**collect_given(options, extractor))
    return found


# --- extractors -----------------------------------------------------------------------------------


def _add_tfidf(extractors: Any) -> None:
    parser = _add_extractor(
        extractors, "tfidf", _make_tfidf, "TF-IDF of word or character n-grams, sparse"
    )
    add_flags(parser, _import_extractor("tfidf"))
    add = parser.add_argument
    add("--ngrams", metavar="N..M", help="their lengths (default: 1..2 words, 2..4 characters)")
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


def _make_tfidf(options: argparse.Namespace, _: "Experiment") -> "FeatureExtractor":
    from ordinate.tuning.features.tfidf import Tfidf

    keep_all = options.max_features == "all"
    return Tfidf(
        **collect_given(options, Tfidf),
        ngrams=None if options.ngrams is None else _parse_span("--ngrams", options.ngrams),
        min_df=_parse_bound("--min-df", options.min_df),
        max_df=_parse_bound("--max-df", options.max_df),
        max_features=None if keep_all else _parse_integer("--max-features", options.max_features),
        sublinear=not options.linear,
        lowercase=not options.keep_case,
    )


def _add_concat(extractors: Any) -> None:
    parser = _add_extractor(
        extractors,
        "concat",
        _make_concat,
        "feature sets of the experiment side by side",
        "Columns are called SET:FEATURE. The set is sparse if one of a part is; dense parts are "
        "taken as they are, nothing is scaled.",
    )
    parser.add_argument("parts", nargs="+", metavar="SET", help="two feature sets or more")


def _make_concat(options: argparse.Namespace, experiment: "Experiment") -> "FeatureExtractor":
    from ordinate.tuning.features.concat import Concat

    return Concat(tuple(options.parts), experiment)


def _add_external(extractors: Any) -> None:
    parser = _add_extractor(
        extractors,
        "external",
        _make_external,
        "features of your own: a table of numbers with ids",
        "Every item of every data set needs a row of its id, and every column has to be of "
        "finite numbers. Rows of other ids are not used.",
    )
    add = parser.add_argument
    add(
        "file",
        metavar="FILE",
        type=InputPath,
        help="Parquet, CSV, TSV or JSONL for all data sets, or a folder with one for each, named "
        "as the data sets are",
    )
    add(
        "--drop",
        metavar="COL",
        action="append",
        default=[],
        help="a column that is no feature; may be repeated",
    )


def _make_external(options: argparse.Namespace, experiment: "Experiment") -> "FeatureExtractor":
    from ordinate.tuning.features.external import External

    return External(options.file, tuple(options.drop), experiment)


# --- runs -----------------------------------------------------------------------------------------


def _run_extraction(options: argparse.Namespace, make: "ExtractorMaker") -> int:
    write_report(options, lambda: _extract_features(options, make))
    return 0


def _extract_features(options: argparse.Namespace, make: "ExtractorMaker") -> "ExtractionResult":
    from ordinate.cli.progress import show_share
    from ordinate.tuning.features import extract_features

    experiment = open_experiment(options)
    built = make(options, experiment)
    with show_share("making features") as progress:
        return extract_features(
            experiment, built, options.name, batch=options.batch, progress=progress
        )


def _run_list(options: argparse.Namespace) -> int:
    from ordinate.tuning.features import list_feature_sets

    write_report(options, lambda: list_feature_sets(open_experiment(options)))
    return 0


# --- numbers --------------------------------------------------------------------------------------


def _parse_integer(option: str, text: str) -> int:
    try:
        return int(text.replace("_", ""))
    except ValueError:
        raise BadOption(f"{option} takes an integer, not {text!r}.") from None


def _parse_bound(option: str, text: str) -> float:
    """Return a number of texts, or a share where there is a point in it."""
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        raise BadOption(f"{option} takes a number such as 2, or a share such as 0.01.") from None


def _parse_span(option: str, text: str) -> tuple[int, int]:
    low, dots, high = text.partition("..")
    first = _parse_integer(option, low)
    return first, _parse_integer(option, high) if dots else first

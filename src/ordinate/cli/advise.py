"""`ordinate advise`: which metric to report, asked on a terminal or said by flags."""

import argparse
import sys
from typing import Any

from ordinate.cli.flags import add_flags, collect_given
from ordinate.cli.options import add_command, add_output_options, write_report
from ordinate.errors import BadOption, shorten
from ordinate.settings import format_flag

EXAMPLES = """examples:
  ordinate advise
  ordinate advise --levels order --no-equal-distances --rare-levels --ties not-ranked \\
    --reader shares --scale cefr
  ordinate advise --levels names --no-rare-levels --reader classification --format json
"""
UNANSWERED = "No answer was given."
NOBODY_TO_ASK = "Questions are asked on a terminal alone. Here the answers are flags:"


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    from ordinate.meta.advice import advise

    parser = add_command(
        commands,
        "advise",
        "Say which two or three metrics to report, by what the levels mean and what readers know: "
        "the formal properties behind the choice with their counterexamples, and the sentence for "
        "the methods section. On a terminal, what no flag answers is asked.",
        EXAMPLES,
    )
    add_flags(parser, advise, config=True)  # what is required may be asked
    parser.add_argument(
        "--scale", help="that the sentence for the methods section names: cefr, 1..6 or low,high"
    )
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Ask what has no flag where somebody can answer, and write the advice."""
    from ordinate.meta.advice import advise, list_open_questions

    def give_advice() -> Any:
        answers = collect_given(options, advise)
        while lacking := list_open_questions(answers):
            if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
                raise BadOption(f"{NOBODY_TO_ASK} {', '.join(map(_name_flags, lacking))}.")
            answers[lacking[0]] = _ask(lacking[0])
        return advise(**answers, scale=options.scale)

    write_report(options, give_advice)
    return 0


def _name_flags(name: str) -> str:
    from ordinate.meta.advice import list_meanings

    answers = list(list_meanings(name))
    if answers == ["yes", "no"]:
        return f"{format_flag(name)} or {format_flag(f'no_{name}')}"
    return f"{format_flag(name)} {'|'.join(answers)}"


def _ask(name: str) -> Any:
    """Ask until what is typed is an answer: its number, its name, or how it alone begins."""
    from ordinate.meta.advice import QUESTIONS, list_meanings

    meanings = list_meanings(name)
    lines = [f"  {k}  {answer}: {what}" for k, (answer, what) in enumerate(meanings.items(), 1)]
    shown = "\n".join(["", QUESTIONS[name], *lines, ""])
    while True:
        sys.stderr.write(f"{shown}1 to {len(lines)}: ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            raise BadOption(UNANSWERED)
        said = line.strip().lower().replace("_", "-") or "nothing"
        numbered = [answer for k, answer in enumerate(meanings, 1) if said == str(k)]
        found = numbered or [answer for answer in meanings if answer.startswith(said)]
        if len(found) == 1:
            return {"yes": True, "no": False}.get(found[0], found[0].replace("-", "_"))
        shown = (
            f"{shorten(line.strip())} is no answer. Type a number, or {' or '.join(meanings)}; as "
            "much of it as is clear will do.\n"
        )

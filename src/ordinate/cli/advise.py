"""`ordinate advise`: which metric to report, asked on a terminal or said by flags."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from ordinate.cli.flags import add_flags, collect_given
from ordinate.cli.options import add_command, add_output_options, write_report
from ordinate.errors import BadOption, shorten
from ordinate.settings import format_flag

if TYPE_CHECKING:
    from ordinate.meta.advice_rules import Question
    from ordinate.meta.metric_advice import MetricAdvice

EXAMPLES = """examples:
  ordinate advise
  ordinate advise --levels order --no-equal-distances --rare-levels --ties not-ranked \\
    --reader shares --scale cefr
  ordinate advise --levels names --no-rare-levels --reader classification --format json

exit codes: 0 done, 1 internal error, 2 bad input, 130 interrupted
"""
UNANSWERED = "No answer was given."


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    from ordinate.meta.metric_advice import advise

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
    """Ask what has no flag, and write the advice."""
    write_report(options, lambda: _give_advice(options))
    return 0


def _give_advice(options: argparse.Namespace) -> "MetricAdvice":
    from ordinate.meta.advice_rules import list_open_questions
    from ordinate.meta.metric_advice import advise

    answers = collect_given(options, advise)
    lacking = list_open_questions(answers)
    if lacking and not _is_conversation():
        raise BadOption(_name_lacking_flags(lacking))
    while questions := list_open_questions(answers):
        answers[questions[0].name] = _ask(questions[0])
    return advise(**answers, scale=options.scale)


def _is_conversation() -> bool:
    """Tell whether somebody is there to answer: nothing is a pipe or a file."""
    return all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def _name_lacking_flags(lacking: "list[Question]") -> str:
    named = ", ".join(
        f"{format_flag(question.name)} or {format_flag('no_' + question.name)}"
        if True in question.meanings
        else f"{format_flag(question.name)} {'|'.join(_list_answers(question))}"
        for question in lacking
    )
    return f"Questions are asked on a terminal alone. Here the answers are flags: {named}."


def _ask(question: "Question") -> Any:
    """Ask until what is typed is one of the question's answers."""
    names = _list_answers(question)
    sys.stderr.write(f"\n{question.text}\n")
    for place, (name, meaning) in enumerate(zip(names, question.meanings.values(), strict=True)):
        sys.stderr.write(f"  {place + 1}  {name}: {meaning}\n")
    while True:
        sys.stderr.write(f"1 to {len(names)}: ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            raise BadOption(UNANSWERED)
        found = _find_answer(line.strip().lower().replace("_", "-"), names)
        if found is not None:
            return list(question.meanings)[found]
        sys.stderr.write(
            f"{shorten(line.strip())} is no answer. Type a number, or {' or '.join(names)}; as "
            "much of it as is clear will do.\n"
        )


def _find_answer(said: str, names: list[str]) -> int | None:
    """Return the place of an answer: by its number, its name, or how it alone begins."""
    numbered = [str(place + 1) for place in range(len(names))]
    for known in (numbered, names):
        if said in known:
            return known.index(said)
    begun = [place for place, name in enumerate(names) if said and name.startswith(said)]
    return begun[0] if len(begun) == 1 else None


def _list_answers(question: "Question") -> list[str]:
    from ordinate.meta.advice_rules import format_answer

    return [format_answer(answer) for answer in question.meanings]

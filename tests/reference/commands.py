"""The cases of the command line, in groups: a group has a folder of its own and runs in order."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import inputs
from reading import read_file, read_report, read_tree
from renaming import FOLDER, RENAMES

FORMS = ("json", "text", "csv", "markdown", "latex")
LIMIT = 600  # seconds after which a command hangs
Found = tuple[str, Any, str]  # the name of a case, its record, and a complaint


@dataclass(frozen=True)
class Run:
    """A command, and what of it is recorded: the exit code, the report, and files that it wrote.

    `reports` is the form of standard output, or None where it is not recorded; `code` is the exit
    code without which there is nothing to record.
    """

    name: str
    command: str
    words: str
    reports: str | None = "text"
    files: tuple[str, ...] = ()
    code: int = 0

    def read(self, folder: Path, code: int, out: str, err: str) -> Found:
        """Return what the command left; what it said of errors is a complaint if it failed."""
        record: dict[str, Any] = {"exit": code}
        if code != self.code:
            return self.name, record, f"exit {code}: {err}"
        if self.reports is not None:
            report = out.replace(f"{folder.resolve()}/", "")
            record["report"] = read_report(report, self.reports)
        for name in self.files:
            record.setdefault("files", {})[name] = read_file(folder / RENAMES.rename_place(name))
        return self.name, record, ""


class Batch:
    """Commands that run one after the other in one process: imports take longest."""

    def __init__(self, *runs: Run, stdin: str | None = None) -> None:
        self.runs, self.stdin = runs, stdin

    @property
    def names(self) -> list[str]:
        """The cases."""
        return [run.name for run in self.runs]

    def run(self, folder: Path) -> Iterator[Found]:
        """Run the commands in a folder, and read what they left."""
        lines = [RENAMES.rename_words(run.command, shlex.split(run.words)) for run in self.runs]
        stdin = "" if self.stdin is None else (folder / self.stdin).read_text("utf-8")
        for run, one in zip(self.runs, run_lines(lines, folder, stdin), strict=True):
            yield guard(run.name, partial(run.read, folder, *one))


@dataclass(frozen=True)
class Look:
    """Something else that is done in the folder of a group, and what of it is recorded, if any."""

    name: str
    look: Callable[[Path], Any]

    @property
    def names(self) -> list[str]:
        """The case."""
        return [self.name]

    def run(self, folder: Path) -> Iterator[Found]:
        """Look at the folder."""
        name, record, complaint = guard(self.name, lambda: (self.name, self.look(folder), ""))
        if record is not None or complaint:
            yield name, record, complaint


Step = Batch | Look


def guard(name: str, read: Callable[[], Found]) -> Found:
    """Return what was found, or why that failed: one broken command must not end the others."""
    try:
        return read()
    except Exception:  # noqa: BLE001 - whatever it is, it is reported as this case's
        return name, None, traceback.format_exc()


def run_lines(lines: list[list[str]], folder: Path, stdin: str = "") -> list[tuple[int, str, str]]:
    """Run command lines in a process of their own; return code, output and errors of each."""
    done = subprocess.run(
        [sys.executable, str(FOLDER / "several.py"), json.dumps(lines)],
        cwd=folder,
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        env=os.environ | {"COLUMNS": "100"},
        timeout=LIMIT,
        check=False,
    )
    if done.returncode:  # the process itself broke, and with it all of them
        return [(done.returncode, "", done.stderr)] * len(lines)
    return json.loads(done.stdout.rpartition("\n")[2])


def try_forms(name: str, command: str, words: str, forms: tuple[str, ...] = FORMS) -> Batch:
    """Return a case for each form of a report."""
    return Batch(
        *(Run(f"{name}-{form}", command, f"{words} --format {form}", form) for form in forms)
    )


def try_json(prefix: str, command: str, cases: dict[str, str]) -> Batch:
    """Return cases whose report is JSON, by name."""
    return Batch(
        *(
            Run(f"{prefix}/{name}", command, f"{words} --format json", "json")
            for name, words in cases.items()
        )
    )


def try_refusals(prefix: str, command: str, cases: dict[str, str]) -> Batch:
    """Return cases of bad input, of which the exit code is all."""
    return Batch(
        *(
            Run(f"{prefix}/bad-{name}", command, words, reports=None, code=2)
            for name, words in cases.items()
        )
    )


# --- labels --------------------------------------------------------------------------------------

LABELS = "ratings.csv --gold gold --predicted a --scale low,mid,high,top"
HOLES, UNANSWERED, SPELLED = (
    LABELS.replace("ratings", name) for name in ("holes", "unanswered", "spelled")
)
SOME = "--metrics cem_ord,quadratic_kappa,f1_macro,macro_mae,min_sensitivity,mutual_information"
METHODS = ("delta", "percentile", "bca", "wilson", "mover", "simultaneous", "dirichlet", "jeffreys")


def list_evaluations() -> Iterator[Step]:
    """Evaluate labels."""
    yield Look("evaluate/-inputs", _prepare(inputs.copy_examples, inputs.write_labels))
    example = "cefr_levels.csv --gold gold --predicted predicted"
    yield try_forms("evaluate/example", "evaluate", example)
    yield try_forms(
        "evaluate/clustered",
        "evaluate",
        "cefr_systems.csv --gold gold --predicted ensemble --groups writer --second-gold rater_2"
        " --losses cem_ord,mae --metrics cem_ord,quadratic_kappa,mae",
    )
    yield try_forms("evaluate/by", "evaluate", f"{LABELS} --by language --draws 300")
    yield try_json(
        "evaluate",
        "evaluate",
        {
            "all-metrics": f"{LABELS} --metrics all --draws 400 --seed 5",
            "expressions": f"{LABELS} --metrics 'weighted_kappa(power=1),accuracy_within(n=2)'",
            "few-groups": f"{LABELS} --groups class --by language --losses f1_macro",
            "real-weights": f"{LABELS} --weights w --metrics all --draws 300",
            "whole-weights": f"{LABELS} --weights times --metrics all --draws 300",
            "weights-and-groups": f"{LABELS} --weights w --groups writer --second-gold second",
            "missing-drop": f"{HOLES} --missing drop",
            "missing-worst": f"{UNANSWERED} --missing worst --metrics all --by language",
            "map-csv": f"{SPELLED} --map map.csv",
            "map-json": f"{SPELLED} --map map.json --no-interval",
            "level": f"{LABELS} --interval 0.8 --draws 300 --seed 2",
            "stratified": f"{LABELS} --stratified {SOME} --draws 300",
            "joined": "run_b.jsonl --gold-file gold.csv --id id --gold gold --predicted answer"
            " --scale low,mid,high,top",
            "row-order": "answers.csv --gold-file gold.csv --row-order --gold gold"
            " --predicted answer --scale low,mid,high,top",
            "two-files": "part_1.csv part_2.csv --gold gold --predicted c --scale low,mid,high,top",
        },
    )
    yield try_json(
        "evaluate",
        "evaluate",
        {
            f"method-{method}": f"{LABELS} {SOME},accuracy --interval-method {method} --draws 300"
            for method in METHODS
        },
    )
    method = f"{LABELS} {SOME} --groups class --interval-method t"
    yield try_json("evaluate", "evaluate", {"method-t": method})
    own = f"{LABELS} --metrics too_low,mae --load own.py --draws 300"
    yield try_json("evaluate", "evaluate", {"own-metric": own})
    yield from _list_ways_in_and_out()


def _list_ways_in_and_out() -> Iterator[Step]:
    piped = f"{LABELS} --metrics mae --format csv".replace("ratings.csv", "-")
    yield Batch(Run("evaluate/stdin", "evaluate", piped, "csv"), stdin="ratings.csv")
    passes = f"{LABELS} --metrics cem_ord,mae --fail-under"
    items = f"{LABELS} --by language --metrics mae --items"
    yield Batch(
        Run("evaluate/passes", "evaluate", f"{passes} cem_ord=0.3 --fail-under mae=0.9"),
        Run("evaluate/fails", "evaluate", f"{passes} cem_ord=0.99", code=3),
        *(
            Run(
                f"evaluate/items-{suffix}",
                "evaluate",
                f"{items} wrong.{suffix}",
                files=(f"wrong.{suffix}",),
            )
            for suffix in ("csv", "jsonl", "parquet")
        ),
    )
    yield try_refusals(
        "evaluate",
        "evaluate",
        {
            "scale": "ratings.csv --gold gold --predicted a --scale low,mid",
            "column": "ratings.csv --gold gold --predicted nothing --scale low,mid,high,top",
            "metric": f"{LABELS} --metrics nothing",
            "missing": HOLES,
            "file": "nothing.csv",
            "no-scale": "ratings.csv --gold gold --predicted a",
            "output-there": f"{LABELS} -o map.json",
        },
    )


def list_probabilities() -> Iterator[Step]:
    """Evaluate probabilities, and decode them."""
    yield Look("probabilities/-inputs", _prepare(inputs.write_probabilities))
    asked = "p_ probabilities.csv --gold level"
    yield try_forms("probabilities/plain", "evaluate --probabilities", asked)
    yield try_json(
        "probabilities",
        "evaluate --probabilities",
        {
            "all-metrics": f"{asked} --metrics all --draws 300",
            "bins": f"{asked} --metrics 'brier,ece(bins=15),log_loss(clip=None),mae'",
            "by": f"{asked} --predicted guess --by topic --draws 300 --seed 4",
            "groups": f"{asked} --predicted guess --groups writer --draws 300",
            "weights": f"{asked} --weights w --draws 300 --interval 0.9",
            "renormalize": "p_ rough.csv --gold level --renormalize --no-interval",
            "missing-drop": "p_ gaps.csv --gold level --missing drop",
            "columns": "p_A1,p_A2,p_B1,p_B2,p_C1,p_C2 probabilities.csv --gold level --scale cefr",
        },
    )
    yield try_refusals(
        "probabilities",
        "evaluate --probabilities",
        {"rough": "p_ rough.csv --gold level", "columns": "q_ probabilities.csv --gold level"},
    )
    yield from _list_decodings()


def _list_decodings() -> Iterator[Step]:
    fitted = "new.csv --probabilities p_ --fit probabilities.csv --gold level --metric"
    own = "probabilities.csv --probabilities p_ --gold level --draws 300 --metric"
    metrics = ("cem_ord", "macro_mae", "f1_macro", "min_sensitivity", "linear_kappa", "mcc")
    cases = {metric: f"{fitted} {metric} --draws 300" for metric in metrics} | {
        "own-rows": f"{own} cem_ord --seed 3",
        "balanced": f"{own} macro_accuracy --class-weights balanced --interval 0.9",
        "weighted": f"{own} mae --class-weights 2,1,1,1,1,3",
        "by-level": f"{own} mae --class-weights A1=2,A2=1,B1=1,B2=1,C1=1,C2=4",
    }
    yield Batch(
        *(_decode(form, f"{fitted} quadratic_kappa --id id", form) for form in FORMS),
        *(_decode(name, words, "json") for name, words in cases.items()),
        Run(
            "decode/stdout",
            "decode",
            "rough.csv --probabilities p_ --metric mae --scale cefr --renormalize",
            reports="csv",
        ),
    )
    yield try_refusals(
        "decode",
        "decode",
        {
            "metric": f"{own} kendall_tau_b",
            "unfitted": "new.csv --probabilities p_ --metric quadratic_kappa --scale cefr",
        },
    )


def _decode(name: str, words: str, form: str) -> Run:
    file = f"levels-{name}.csv"
    return Run(f"decode/{name}", "decode", f"{words} -o {file} --format {form}", form, (file,))


def list_comparisons() -> Iterator[Step]:
    """Compare systems, and plan."""
    yield Look("compare/-inputs", _prepare(inputs.copy_examples, inputs.write_labels))
    example = "cefr_systems.csv --gold gold --systems tfidf,forest,transformer,ensemble"
    yield try_forms(
        "compare/example",
        "compare",
        f"{example} --metrics cem_ord,quadratic_kappa,mae --pairs ensemble:transformer",
    )
    systems = "--gold gold --systems a,b,c,second --scale low,mid,high,top --draws 300"
    wide = f"ratings.csv {systems}"
    yield try_json(
        "compare",
        "compare",
        {
            "all-metrics": f"{example} --metrics all --draws 200 --seed 3",
            "groups": f"{example} --groups writer --metrics cem_ord,f1_macro --pairs forest:tfidf",
            "few-groups": f"{wide} --groups class --metrics cem_ord,macro_mae,f1_macro",
            "leader": f"{wide} --against leader --metrics cem_ord,bias",
            "against": f"{wide} --against a --metrics mae,min_sensitivity --interval 0.9",
            "margin": f"{wide} --margin cem_ord=0.05 --margin mae=0.1 --metrics cem_ord,mae",
            "pairs": f"{wide} --pairs a:b --pairs a:c --metrics cem_ord,mae,f1_macro --seed 8",
            "real-weights": f"{wide} --weights w --metrics cem_ord,f1_macro",
            "whole-weights": f"{wide} --weights times --metrics cem_ord,f1_macro --pairs a:b",
            "missing-drop": f"holes.csv {systems} --missing drop",
            "missing-worst": f"unanswered.csv {systems} --missing worst --metrics cem_ord,mae",
            "map": f"spelled.csv {systems} --map map.csv --metrics cem_ord",
            "runs": "gold.csv run_a.csv run_b.jsonl --id id --gold gold --predicted answer"
            " --scale low,mid,high,top --draws 300",
        },
    )
    own = f"{wide} --metrics too_low --load own.py"
    yield try_json("compare", "compare", {"own-metric": own})
    corrections = ("holm", "bh", "by", "none")
    cases = {f"correction-{how}": f"{wide} --correction {how} {SOME}" for how in corrections}
    yield try_json("compare", "compare", cases)
    yield try_refusals(
        "compare",
        "compare",
        {
            "system": "ratings.csv --gold gold --systems a,nothing --scale low,mid,high,top",
            "one-system": "ratings.csv --gold gold --systems a --scale low,mid,high,top",
            "pair": f"{wide} --pairs a:nothing",
        },
    )
    yield from _list_plans(wide)


def _list_plans(wide: str) -> Iterator[Step]:
    pilot = "cefr_systems.csv --gold gold --systems transformer,ensemble"
    yield try_forms("power/example", "power", f"{pilot} --metric cem_ord --difference 0.02")
    two = wide.replace("a,b,c,second", "a,b")
    yield try_json(
        "power",
        "power",
        {
            "items": f"{two} --metric mae --items 500,1000,5000 --interval 0.9",
            "power": f"{two} --metric quadratic_kappa --difference 0.05 --power 0.9 --seed 4",
            "groups": f"{two} --metric cem_ord --difference 0.05 --groups writer",
            "one-system": f"{wide.replace('a,b,c,second', 'a')} --metric f1_macro",
            "runs": "gold.csv run_a.csv run_b.jsonl --id id --gold gold --predicted answer"
            " --scale low,mid,high,top --draws 300 --difference 0.03",
        },
    )
    yield try_refusals("power", "power", {"metric": f"{two} --metric nothing"})


# --- quantities ----------------------------------------------------------------------------------


def list_quantities() -> Iterator[Step]:
    """Evaluate quantities with units."""
    yield Look("values/-inputs", _prepare(inputs.write_quantities))
    command = "evaluate --task values"
    asked = "quantities.csv --target density --predicted predicted"
    yield try_forms(
        "values/whole",
        command,
        f"{asked} --unit kg/m³ --lower lo --upper hi --alpha 0.2 --order t"
        " --residuals family,depth --against linear,forest --shifted elsewhere.csv"
        " --bins 600,650,700 --train-mean 650 --train-std 80",
    )
    yield try_forms("values/by", command, f"{asked} --by family --groups lab --metrics all")
    yield try_json(
        "values",
        command,
        {
            "plain": asked,
            "real-weights": f"{asked} --weights w --against linear --metrics all",
            "whole-weights": f"{asked} --weights times --against linear --bins 650 --by family",
            "groups": f"{asked} --groups lab --against linear,forest --lower lo --upper hi",
            "poisson": f"{asked} --poisson --draws 200 --seed 6 --metrics all",
            "level": f"{asked} --interval 0.8 --residuals --against linear --bins 650",
            "no-interval": f"{asked} --no-interval --residuals --lower lo --upper hi --against"
            " forest --shifted elsewhere.csv",
            "normalized": "normalized.csv --target density --predicted predicted --normalized"
            " --train-mean 650 --train-std 80 --lower lo --upper hi --against linear",
            "missing-drop": "quantity_holes.csv --target density --predicted predicted"
            " --missing drop --residuals --against linear --lower lo --upper hi --bins 600,700",
            "few": "few.csv --target density --predicted predicted --against linear --residuals"
            " depth --lower lo --upper hi --order t",
            "joined": "predictions.csv --gold-file targets.csv --id id --target density"
            " --predicted predicted",
            "row-order": "predictions.csv --gold-file targets.csv --row-order --target density"
            " --predicted predicted --metrics all",
        },
    )
    yield Batch(Run("values/fails", command, f"{asked} --fail-under rmse=1", code=3))
    yield try_refusals(
        "values",
        command,
        {
            "bounds": f"{asked} --lower lo",
            "bins": f"{asked} --bins 700,600",
            "metric": f"{asked} --metrics cem_ord",
            "missing": "quantity_holes.csv --target density --predicted predicted",
        },
    )


# --- metrics -------------------------------------------------------------------------------------


def list_catalogues() -> Iterator[Step]:
    """List metrics, show properties, judge metrics, run the synthetic study."""
    yield Look(
        "metrics/-inputs",
        _prepare(inputs.copy_examples, inputs.write_labels, inputs.write_campaign),
    )
    yield try_forms("metrics/labels", "metrics", "")
    for kind in ("probabilities", "values", "intervals", "ensembles"):
        yield try_forms(f"metrics/{kind}", "metrics", f"--of {kind}", ("json", "text"))
    for name in ("cem_ord", "quadratic_kappa", "rmse", "ece", "winkler", "crps"):
        yield try_forms(f"metrics/{name}", "metrics", name, ("json", "text"))
    yield try_json("metrics", "metrics", {"own": "too_low --load own.py"})
    yield try_refusals("metrics", "metrics", {"name": "nothing"})
    yield try_forms("properties/all", "properties", "")
    explained = "--explain quadratic_kappa monotonicity"
    yield try_forms("properties/explained", "properties", explained)
    yield try_json(
        "properties",
        "properties",
        {
            "some": "cem_ord mae",
            "searched": "mae 'weighted_kappa(power=1)' --search --most-items 4",
        },
    )
    own = "too_low --load own.py --search --most-items 3"
    yield try_json("properties", "properties", {"own": own})
    yield try_refusals("properties", "properties", {"name": "--explain mae nothing"})
    yield from _list_judgements()
    yield try_forms("study/two-seeds", "study", "synthetic --seed 3 --seeds 2")
    options = "synthetic --seeds 1 --option errors=independent --option values=pooled"
    yield try_json("study", "study", {"options": options})
    yield try_refusals("study", "study", {"option": "synthetic --option errors=nothing"})


def _list_judgements() -> Iterator[Step]:
    scale = "--scale low,mid,high --draws 200"
    wide = f"campaign.csv --gold gold --systems v,w,x,y,z {scale}"
    named = "--gold-file gold.tsv --test-case entity --id tweet --value polarity"
    yield try_forms("meta/columns", "meta", f"{wide} --test-case topic")
    yield try_json(
        "meta",
        "meta",
        {
            "runs": f"runs {named} {scale} --metrics mae,cem_ord,bias",
            "lenient": f"ragged {named} {scale} --lenient --metrics mae,cem_ord",
            "at-random": f"{wide} --cases 6 --seed 3 --metrics mae,cem_ord",
            "options": f"{wide} --test-case topic --alpha 0.2 --interval 0.8 --unanimity strict"
            " --references accuracy,mae --metrics 'mae,weighted_kappa(power=1)' --seed 2",
            "all-metrics": f"{wide} --test-case topic --metrics all",
            "example": "cefr_systems.csv --gold gold --systems rater_2,tfidf,forest,transformer,"
            "ensemble --metrics cem_ord,f1_macro --draws 200",
        },
    )
    yield try_refusals("meta", "meta", {"lines": f"ragged {named} {scale}"})


# --- experiments ---------------------------------------------------------------------------------


def list_texts() -> Iterator[Step]:
    """Lay out the shipped texts, make features, tune, predict, rank and evaluate."""
    yield Batch(Run("texts/init", "init", "study"))
    yield Look("texts/-outsiders", lambda folder: inputs.write_outsiders(folder, folder / "study"))
    yield from _list_makers()
    tuned = (
        "study --metric cem_ord --models logistic,regression,threshold,vote --trials 3"
        " --folds 3 --feature-pattern 'tfidf-*'"
    )
    yield try_json("tune", "tune -e", {"plan": f"{tuned} --dry-run"})
    yield try_forms("tune/texts", "tune -e", tuned)
    yield from _list_uses()
    yield Look("texts/files", lambda folder: _read_results(folder / "study"))


def _list_makers() -> Iterator[Step]:
    tfidf = {
        "letters": "--analyzer char_wb --ngrams 2..3 --max-features 300 --name wb",
        "by-topic": "--group-by topic --min-df 1 --name topics --batch 50",
        "plain": "--linear --keep-case --max-df 0.5 --name plain",
    }
    makers = {
        "lexical": {"lexical": ""},
        "tfidf": tfidf,
        "concat": {"concat": "lexical wb --name both"},
        "external": {"external": "own_features.csv --drop note --name own"},
    }
    for maker, cases in makers.items():
        placed = {name: f"-e study {words}" for name, words in cases.items()}
        yield try_json("features", f"features {maker}", placed)
    yield try_forms("features/again", "features lexical", "-e study")
    yield try_forms("features/list", "features list", "-e study")
    yield try_refusals("features", "features tfidf", {"there": "-e study --name wb"})
    yield try_forms("check/study", "check -e", "study")
    made = RENAMES.rename_place("study/features")
    yield Look("features/files", lambda folder: read_tree(folder / made))


def _list_uses() -> Iterator[Step]:
    """Use what was tuned."""
    new = "study --data new_texts.csv"
    features = "study --features study/features/tfidf-word/texts_test --model tfidf-word-threshold"
    yield try_forms("predict/tests", "predict -e", "study --force")
    yield Batch(
        Run("predict/new-csv", "predict -e", f"{new} -o new.csv", files=("new.csv",)),
        Run("predict/new-parquet", "predict -e", f"{new} -o new.parquet", files=("new.parquet",)),
        Run("predict/stdout", "predict -e", f"{new} --model tfidf-word-logistic", "csv"),
        Run("predict/features", "predict -e", f"{features} -o f.csv", files=("f.csv",)),
    )
    yield try_refusals("predict", "predict -e", {"model": "study --model nothing"})
    yield try_forms("rank/study", "rank -e", "study --by cem_ord")
    outside = "study --by quadratic_kappa --external judge.json --external outside.csv --draws 300"
    yield try_json(
        "rank",
        "rank -e",
        {
            "external": outside,
            "external-drop": f"{outside} --missing drop --interval 0.9 --seed 2",
            "some": "study --by mae --model tfidf-word-logistic --model vote --test texts_test",
        },
    )
    yield try_refusals("rank", "rank -e", {"metric": "study --by nothing"})
    yield try_forms("experiment/study", "evaluate -e", "study")
    some = "study --metrics 'mae,weighted_kappa(power=1)' --model vote --test texts_test"
    yield try_json("experiment", "evaluate -e", {"some": some})


def _read_results(folder: Path) -> Any:
    """Return what a search left in an experiment: not its data, and not the features."""
    given = ("ml-training-data", "ml-test-data", "features")
    return read_tree(folder, [RENAMES.rename_place(name) for name in given])


def list_experiments() -> Iterator[Step]:
    """Tune an experiment of numbers: groups, weights, nested estimates, configuration files."""
    yield Look("experiment/-inputs", _lay_out)
    grouped = "small --group-column writer --models logistic,lightgbm,forest --trials 2"
    yield try_json(
        "tune",
        "tune -e",
        {
            "groups": f"{grouped} --folds 3 --metric quadratic_kappa --top-k 1",
            "weights": "second --weight-strategy inverse_sqrt --weight-alpha 0.5 --weight-metric"
            " --models svm,frank_hall --trials 2 --folds 3 --metric macro_mae --seed 3",
            "average": "third --decode average --models naive_bayes,threshold,vote --folds 3"
            " --trials 2 --early-discard-percentile 40 --metric mae",
            "argmax": "fourth --decode argmax --models logistic --folds 3 --trials 5"
            " --early-discard-threshold 0.3 --metric accuracy",
            "xgboost": "sixth --models xgboost --trials 2 --folds 2 --feature-pattern strong",
        },
    )
    nested = "--config nested.toml"
    yield try_forms("tune/nested", "tune", nested, ("json", "text"))
    yield try_json("features", "features embeddings", {"embeddings": "-e sixth"})
    yield try_json("rank", "rank -e", {"groups": "small --group-column writer --by mae"})
    yield try_json(
        "experiment", "evaluate -e", {"groups": "small --group-column writer --metrics cem_ord,mae"}
    )
    yield try_json("predict", "predict -e", {"groups": "small"})
    yield try_forms("check/small", "check -e", "small", ("json",))
    yield try_refusals("tune", "tune -e", {"model": "small --models nothing"})
    yield try_refusals("check", "check -e", {"folder": "nothing"})
    embedded = RENAMES.rename_place("sixth/features/embeddings")
    yield Look("features/files-embeddings", lambda folder: read_tree(folder / embedded))
    for name in EXPERIMENTS:
        case = f"experiment/files-{name}"
        yield Look(case, lambda folder, name=name: _read_results(folder / name))


EXPERIMENTS = ("small", "second", "third", "fourth", "fifth", "sixth")


def _lay_out(folder: Path) -> None:
    """Lay out experiments, one for each search: models of one name do not meet then."""
    for name in EXPERIMENTS:
        inputs.write_experiment(folder / name)
    settings = {
        "experiment": "fifth",
        "metric": "cem_ord",
        "models": ["logistic", "threshold"],
        "top-k": 1,
        "trials": 2,
        "folds": 3,
        "nested": True,
    }
    _write_config(folder / "nested.toml", "tune", settings)


def _write_config(path: Path, command: str, settings: dict[str, Any]) -> None:
    """Write flags as TOML, by the names that they have now."""
    lines = []
    for flag, value in settings.items():
        name = RENAMES.rename_flag(command, f"--{flag}").lstrip("-")
        renamed = _rename_values(command, f"--{flag}", value)
        lines.append(f"{name} = {json.dumps(renamed)}")  # TOML writes these values as JSON does
    path.write_text("\n".join(lines) + "\n", "utf-8")


def _rename_values(command: str, flag: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_rename_values(command, flag, item) for item in value]
    return RENAMES.rename_setting(command, flag, value) if isinstance(value, str) else value


# --- surrogates ----------------------------------------------------------------------------------


def list_surrogates() -> Iterator[Step]:
    """Tune regression models, predict with them, analyse and compare searches."""
    yield Look("surrogate/-inputs", _write_surrogate_inputs)
    asked = "small.csv --target density --unit kg/m³"
    tuned = f"{asked} --models poly_ridge,svr,lightgbm --trials 5 --folds 2 -e found"
    command = "tune-regression"
    yield try_forms("surrogate/tune", command, tuned)
    yield try_forms("surrogate/analyze", "analyze-search", "-e found")
    cases = {
        "surrogate/tune": {
            "preset": f"{asked} --preset minimal --seed 2 -e preset",
            "shift": f"{asked} --models kernel_ridge,hist_boosting --trials 2 --folds 2 --alpha 0.2"
            " --shift pressure --shift-share 0.15 --blend always -e shift",
            "groups": f"{asked} --models poly_ridge --trials 2 --group-column substance --folds 3"
            " --features carbons,temperature --lattice never --blend never -e groups",
            "config": "small.csv --config tune.toml",
        },
        "surrogate/train": {
            "params": f"{asked} --params {_give(poly_ridge={'degree': 2})} --models poly_ridge"
            " --blend never --trials 1 --folds 2 -e ridge",
            "params-of": f"{asked} --models svr --params-of found --folds 2 --trials 1"
            " --blend never -e svr",
            "gp": f"{asked} --models gp --params {_give(gp={})} --trials 1 --blend never --folds 2"
            " -e gp",
            "mlp": f"{asked} --models mlp --params {_give(mlp={})} --trials 1 --blend never"
            " --folds 2 --epochs 4 -e mlp",
        },
        "surrogate/ensemble": {
            "kinds": f"{asked} --models svr,poly_ridge --params {_give(svr={}, poly_ridge={})}"
            " --trials 1 --blend always --folds 2 -e kinds",
            "params-of": f"{asked} --params-of found --trials 1 --blend always --folds 2 -e again",
            "networks": f"{asked} --models mlp --params {_give(mlp={'members': 3})} --trials 1"
            " --blend never --epochs 3 --folds 2 -e networks",
        },
    }
    for prefix, some in cases.items():
        yield try_json(prefix, command, some)
    yield try_json("surrogate/analyze", "analyze-search", {"networks": "-e networks"})
    yield try_forms("surrogate/compare", "compare-searches", "found gp networks")
    yield try_json("surrogate/compare", "compare-searches", {"finalists": "found"})
    yield from _list_surrogate_predictions()
    refused = {
        "target": "small.csv --target nothing -e x",
        "model": f"{asked} --models nothing -e x",
    }
    yield try_refusals("surrogate", command, refused)
    for name in ("found", "preset", "shift", "groups", "config", "networks", "gp"):
        yield Look(f"surrogate/files-{name}", lambda folder, name=name: read_tree(folder / name))


def _give(**params: dict[str, Any]) -> str:
    return shlex.quote(json.dumps(params))


def _list_surrogate_predictions() -> Iterator[Step]:
    command = "predict-regression"
    yield Batch(
        *(
            Run(f"surrogate/predict-{name}", command, f"fresh.csv -e {name}", "csv")
            for name in ("found", "gp", "networks", "shift")
        ),
        Run(
            "surrogate/predict-file",
            command,
            "fresh.csv -e found --model svr --alpha 0.2 -o out.parquet",
            files=("out.parquet",),
        ),
    )
    yield try_refusals("surrogate/predict", command, {"folder": "fresh.csv -e x"})


def _write_surrogate_inputs(folder: Path) -> None:
    inputs.copy_examples(folder)
    inputs.write_densities(folder)
    settings = {"target": "density", "models": ["poly_ridge"], "trials": 3, "folds": 0}
    settings |= {"shift": "target", "shift-end": "low", "experiment": "config"}
    _write_config(folder / "tune.toml", "surrogate tune", settings)


def _prepare(*writers: Callable[[Path], None]) -> Callable[[Path], None]:
    """Return what writes the inputs of a group; there is nothing to record of it."""

    def write(folder: Path) -> None:
        for writer in writers:
            writer(folder)

    return write


GROUPS: dict[str, Callable[[], Iterator[Step]]] = {  # the longest first
    "texts": list_texts,
    "surrogates": list_surrogates,
    "experiments": list_experiments,
    "evaluations": list_evaluations,
    "comparisons": list_comparisons,
    "catalogues": list_catalogues,
    "quantities": list_quantities,
    "probabilities": list_probabilities,
}


def run_group(group: str, folder: Path) -> Iterator[Found]:
    """Run the cases of a group, and take its folder away: experiments are large."""
    for step in GROUPS[group]():
        yield from step.run(folder)
    shutil.rmtree(folder)


def list_names(group: str) -> list[str]:
    """Return the names of the cases of a group."""
    return [name for step in GROUPS[group]() for name in step.names]

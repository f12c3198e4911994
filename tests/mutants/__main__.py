"""`make mutants`: changes the code in one place at a time and checks whether a test fails.

A seeded sample of places in `equations/`, `formulas/`, `models/` and `scenarios/`; each mutant
faces only tests that run the changed statement, in a copy of the checkout, one process at a time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from tests.mutants import cover, quick, score, sites, verdict
from tests.mutants.score import Outcome
from tests.mutants.sites import Mutant
from tests.mutants.verdict import Question

ROOT = Path(__file__).parents[2]
NOTES = ROOT / ".cache" / "mutation"


def main() -> None:
    asked = _arguments()
    tree = NOTES / "tree"
    digest = _copy(tree)
    outcomes = list(_outcomes(asked, tree, digest))
    left_out = [each for each in outcomes if _reason(each)]
    counted = [each for each in outcomes if not _reason(each)]
    (NOTES / "outcomes.json").write_text(json.dumps([asdict(each) for each in counted], indent=1))
    print("\n".join(score.survivors(counted)), end="\n\n")
    print("\n".join(score.table(counted)))
    print(f"left out as equivalent: {len(left_out)}; processor time: {sum(os.times()[:4]):.0f} s")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    add = parser.add_argument
    rooms = [f"figgen/{room}" for room in cover.ROOMS]
    add("paths", nargs="*", default=rooms, help="files and folders to mutate")
    add("--sample", type=int, default=500, metavar="N", help="how many places (0: every one)")
    add("--seed", type=int, default=1, help="another seed, another sample")
    add("--again", action="store_true", help="only what survived last time")
    add("--budget", type=float, default=60.0, metavar="S", help="measured seconds of tests each")
    add("--keep", action="store_true", help="do not measure again although files have changed")
    add("--measure", nargs="+", metavar="FILE", help="measure these tests and keep the others")
    add("--tests", nargs="+", metavar="FILE", help="ask these tests only, without measuring")
    return parser.parse_args()


def _copy(tree: Path) -> str:
    """Copy what git tracks or could add to `tree`; return the digest of code and tests."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    shutil.rmtree(tree, ignore_errors=True)
    digest = hashlib.sha256()
    for name in sorted(filter(None, names.split("\0"))):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
            if name.startswith(("figgen/", "tests/")) and not name.startswith("tests/mutants/"):
                digest.update(name.encode() + (ROOT / name).read_bytes())
    return digest.hexdigest()


def _outcomes(asked: argparse.Namespace, tree: Path, digest: str) -> Iterator[Outcome]:
    """Run the tests on every mutant of the sample, in random order so that any part is a sample
    too."""
    mutants = [mutant for path in _files(asked.paths) for mutant in sites.mutants_of(tree, path)]
    if asked.again:
        chosen = _survivors_of_last_time(tree, mutants)
    else:
        chosen = sites.sample(mutants, asked.sample or len(mutants), asked.seed)
        random.Random(asked.seed).shuffle(chosen)
    known = None if asked.tests else _cover(tree, digest, asked)
    todo = []
    for found, mutant in [(_described(tree, mutant), mutant) for mutant in chosen]:
        if _reason(found):
            yield found
        else:
            todo.append((found, _question(tree, mutant, known, asked)))
    for number, (found, killer) in enumerate(_verdicts(tree, todo), 1):
        outcome = replace(found, killer=killer, golden=killer.startswith(verdict.GOLDEN))
        print("\n".join(score.survivors([outcome])), end="\n" * outcome.survived, flush=True)
        print(f"\r{number} of {len(todo)} ", end="", file=sys.stderr, flush=True)
        yield outcome


def _verdicts(tree: Path, todo: list[tuple[Outcome, Question]]) -> Iterator[tuple[Outcome, str]]:
    """Return verdicts, quickly if possible, else from a process that loads everything anew."""
    fast = [(found, question) for found, question in todo if quick.applies(question)]
    slow = [(found, question) for found, question in todo if not quick.applies(question)]
    answers = quick.verdicts(tree, [question for _, question in fast])
    for (found, question), killer in zip(fast, answers, strict=True):
        if killer is None:
            slow.append((found, question))
        else:
            yield found, killer
    for found, question in slow:
        yield found, verdict.afresh(tree, question) if question.tests else verdict.SURVIVED


def _files(paths: list[str]) -> Iterator[str]:
    for path in paths:
        found = sorted((ROOT / path).rglob("*.py")) if (ROOT / path).is_dir() else [ROOT / path]
        yield from (file.relative_to(ROOT).as_posix() for file in found)


def _survivors_of_last_time(tree: Path, mutants: list[Mutant]) -> list[Mutant]:
    last = [Outcome(**each) for each in json.loads((NOTES / "outcomes.json").read_text("utf-8"))]
    wanted = {(each.path, each.operator, each.before, each.after) for each in last if each.survived}
    places = {key[:3] for key in wanted}
    found = []
    for mutant in mutants:
        source = (tree / mutant.path).read_text("utf-8").splitlines()
        if (mutant.path, mutant.operator, source[mutant.line - 1]) in places:
            told = _described(tree, mutant)
            if (told.path, told.operator, told.before, told.after) in wanted:
                found.append(mutant)
    return found


def _cover(tree: Path, digest: str, asked: argparse.Namespace) -> cover.Cover:
    """Return what the tests run, measured again unless nothing has changed or `last` is
    requested."""
    notes = NOTES / "cover"
    told = notes / "digest"
    kept = asked.keep or asked.measure
    if told.exists() and kept:
        if asked.measure:
            cover.measure(tree, notes, asked.measure)
    elif not told.exists() or told.read_text("utf-8") != digest:
        shutil.rmtree(notes, ignore_errors=True)
        notes.mkdir(parents=True)
        cover.measure(tree, notes)
        told.write_text(digest, encoding="utf-8")
    return cover.read(tree, notes)


def _described(tree: Path, mutant: Mutant) -> Outcome:
    source = (tree / mutant.path).read_text("utf-8")
    before, after = source.splitlines(), mutant.applied(source).splitlines()
    line = mutant.line - 1
    changed = after[line] if len(after) == len(before) else ""
    return Outcome(
        path=mutant.path,
        line=mutant.line,
        operator=mutant.operator,
        before=before[line],
        after=changed,
        killer="",
    )


def _question(
    tree: Path, mutant: Mutant, known: cover.Cover | None, asked: argparse.Namespace
) -> Question:
    source = (tree / mutant.path).read_text("utf-8")
    tests = asked.tests
    if known is not None:
        direct = known.tests(mutant.path, cover.statement(source, mutant.line))
        tests = verdict.order(known, mutant.path, direct, asked.budget)
    function = quick.function_at(source, mutant.line)
    return Question(
        path=mutant.path,
        function=function,
        mutated=mutant.applied(source),
        tests=tests,
        limit_s=asked.budget,
    )


def _reason(found: Outcome) -> str:
    return next((each.reason for each in score.equivalents() if each.covers(found)), "")


if __name__ == "__main__":
    main()

"""Shell, YAML, TOML and JSON are read as their own programs and libraries read them."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from figgen.scenarios.taking.arithmetic import computed
from figgen.scenarios.taking.launchers import read_script
from figgen.scenarios.taking.shell import Shell, read_shell
from figgen.scenarios.taking.toml import read_toml
from figgen.scenarios.taking.yaml import read_yaml
from figgen.scenarios.texts.flow import read_flow

HERE = Path(__file__).parent
CASES = json.loads((HERE.parent / "oracles" / "taken_jobs.json").read_text("utf-8"))["cases"]


SCRIPT = r"""
#!/bin/bash
export A=4
B="two words"
C=$((A * 2 + 1))
ARGS="
   --one $A \
   --two ${MISSING:-7}
   --three=${A}x
"
LIST=(--four "$B" --five $C) # a comment
LIST+=(--six)
probe $ARGS "${LIST[@]}" --seven 'a $A' --eight "in \"quotes\"" \
   --nine # not --ten
probe --eleven ${A:-9} && probe --twelve
"""


def test_words_are_those_that_a_shell_gives_a_program() -> None:
    print_words = 'probe() { for w in "$@"; do echo "$w"; done; }\n'
    shown = subprocess.run(
        ["bash", "-c", print_words + SCRIPT], capture_output=True, text=True, check=True
    ).stdout.split("\n")[:-1]
    shell = Shell(answers={})
    read_shell(SCRIPT, shell)
    words = [word for command in shell.commands for word in command[1:]]
    # Quoted words of several stay together for a shell, and are options for a reader.
    assert " ".join(" ".join(words).split()) == " ".join(" ".join(shown).split())


BRANCHES = r"""
SIZE=70b; TP=4; EMPTY=; LIST=""
if [ $SIZE = 8b ]; then L=1; elif [[ "$SIZE" == 70* ]] && [ $TP -gt 1 ]; then L=2; else L=3; fi
if [ $SIZE = 8b ] || [ $TP -le 2 ]; then M=1
else
  if (( TP * 2 == 8 )); then M=2; else M=3; fi
fi
case $SIZE in
  7b|8b) N=1 ;;
  70b) N=2; O=5 ;;
  *) N=3 ;;
esac
case "$SIZE" in (*b) P=1;; *) P=2;; esac
[ -z "$EMPTY" ] && Q=1
[[ -n $EMPTY ]] && Q=2
[ "$SIZE" != 70b ] || R=1
[ "$SIZE" == 70b ] || R=2
if [ ! $TP -eq 4 ]; then S=1; else S=2; fi
if [ "$SIZE" = 70b -a "$TP" -ne 4 ]; then T=1; else T=2; fi
: "${U:=7}"
if [ -z "$NOBODY" ]; then V=1; else V=2; fi
if [ 1 = 2 ]; then W=1; if [ 1 = 1 ]; then W=2; else W=3; fi; else W=4; fi
probe $L $M $N $O $P $Q $R $S $T $U $V $W
"""


def test_of_conditions_the_branch_that_a_shell_runs_is_read() -> None:
    shown = subprocess.run(
        ["bash", "-c", 'probe() { echo "$@"; }\n' + BRANCHES],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    shell = Shell(answers={})
    read_shell(BRANCHES, shell)
    assert [word for command in shell.commands for word in command if command[0] == "probe"] == [
        "probe",
        *shown,
    ]


def test_branches_that_nobody_can_decide_are_all_read() -> None:
    shell = Shell(answers={})
    read_shell("if [ -f x ]; then A=1; else A=2; fi\nif [ $1 = x ]; then B=1; fi", shell)
    assert (shell.changed(), shell.variables["B"]) == (["A"], "1")


@pytest.mark.parametrize(
    "text", ["2*3+4", "(2+3)*4", "17/5", "17%5", "2*(3+4)*5", "((7))", "10-2-3", "8/2/2"]
)
def test_sums_are_those_of_a_shell(text: str) -> None:
    shown = subprocess.run(
        ["bash", "-c", f"echo $(({text}))"], capture_output=True, text=True, check=True
    ).stdout
    assert computed(text, {}) == shown.strip()


def flat(value: object, name: str = "") -> dict[str, str]:
    """Return what a library reads, as entries; lists of scalars are words."""
    if isinstance(value, dict):
        found: dict[str, str] = {}
        for key, inner in value.items():
            found |= flat(inner, f"{name}.{key}" if name else str(key))
        return found
    if isinstance(value, list):
        plain = [str(one) for one in value if not isinstance(one, dict | list)]
        nested = {
            key: text
            for at, one in enumerate(value)
            if isinstance(one, dict | list)
            for key, text in flat(one, f"{name}.{at}").items()
        }
        return nested | ({name: " ".join(plain)} if plain else {})
    return {name: "" if value is None else str(value)}


def plainly(entries: dict[str, str]) -> dict[str, str]:
    """Return numbers and switches in one spelling, without empty settings."""
    found = {}
    for name, text in entries.items():
        word = {"true": "True", "false": "False", "null": ""}.get(text.strip(), text.strip())
        try:
            word = str(float(word.replace("_", "")))
        except ValueError:
            word = " ".join(word.split())
        if word:
            found[name] = word
    return found


YAMLS = [case for case in CASES if case["file"].endswith((".yaml", ".yml"))]


@pytest.mark.parametrize("case", YAMLS, ids=lambda case: case["file"])
def test_yaml_is_read_as_a_library_reads_it(case: dict[str, Any]) -> None:
    ours = plainly({one.name: one.words for one in read_yaml(case["text"])})
    theirs = plainly(flat(yaml.safe_load(case["text"])))
    # `${name}` is OmegaConf's; of a list with a text of several lines that text stands alone.
    alike = {name for name, text in theirs.items() if "${" not in text}
    alike -= {name for name in alike if name.endswith(".command")}
    assert {name: ours.get(name) for name in alike} == {name: theirs[name] for name in alike}


TRICKY = """
a: 1 # a comment
"b c": 'x # y'
list:
- one
- two: 2
  three: [3, {four: 4}]
-   five: 5
deep:
    er:
        est: "q: r"
flow: {x: 1, "y": [a, b], z: {}}
long: [1,
  2,
  3]
text: |
  not: a setting
  nor this
texts:
- |-
  one
- two
base: &base
  a: 1
  deep: {b: 2}
number: &number 8
merged:
  <<: *base
  a: 3
again: *number
copy: *base
after: ~
url: http://host:80/x
time: 12:30
"""


def test_what_yaml_may_look_like_is_read_as_a_library_reads_it() -> None:
    ours = plainly({one.name: one.words for one in read_yaml(TRICKY)})
    theirs = plainly(flat(yaml.safe_load(TRICKY)))
    # 12:30 is 750 to the library; a text among scalars of a list is an entry of its own here.
    other = ("time", "texts")
    assert {name: ours.get(name) for name in theirs if name not in other} == {
        name: text for name, text in theirs.items() if name not in other
    }
    assert (ours["texts.0"], ours["texts"]) == ("one", "two")


TABLES = """
title = "x # y"
[a.b]
c = 1_000 # a comment
d = [1, 2,
  3] # more
e = { f = 1, g = "h" }
i.j = true
[[k]]
l = 'm'
[[k]]
l = 'n'
"""


def test_toml_is_read_as_a_library_reads_it() -> None:
    ours = {one.name: one.words for one in read_toml(TABLES)}
    assert plainly(ours) == plainly(flat(tomllib.loads(TABLES)))


def test_json_is_read_as_a_library_reads_it() -> None:
    text = '{"a": {"b": [1, 2], "c": null}, "d": "e \\" f", "g": [{"h": 1}, []], "i": -1.5e3}'
    ours = {one.name: one.words for one in read_flow(text, "")[0]}
    assert plainly(ours) == plainly(flat(json.loads(text)))
    assert read_flow('{"a": Infinity}', "")[0][0].value == "Infinity"


def test_a_sign_of_a_key_inside_a_value_is_a_part_of_it() -> None:
    for text in ("args: [--branch=main, --fix]", "a: {b: --c=d, e: 1}", "a: [b=c]"):
        ours = {one.name: one.words for one in read_yaml(text)}
        assert plainly(ours) == plainly(flat(yaml.safe_load(text)))


def test_a_value_may_stand_below_its_key() -> None:
    text = "a:\n  true\nb:\n  one\n  two\nc: 1\n"
    ours = {one.name: one.words for one in read_yaml(text)}
    assert plainly(ours) == plainly(flat(yaml.safe_load(text)))


@pytest.mark.parametrize(
    ("path", "nodes"),
    [
        ("tools/convert_checkpoint.py", 2),
        ("eval/run_eval.py", 2),
        ("exporting.py", 4),
        ("retrieval/main.py", 4),  # `eval` is a part of the word
        ("medieval_llm.py", 4),
        ("pretrain_with_eval.py", 4),
    ],
)
def test_programs_beside_the_training_are_known_by_whole_words(path: str, nodes: int) -> None:
    shell = Shell(answers={})
    text = (
        f"torchrun --nnodes 4 --nproc_per_node 8 {path} --tensor-model-parallel-size 8\n"
        "torchrun --nnodes 2 --nproc_per_node 4 train.py --seq-length 8192 --num-layers 4\n"
    )
    found = [one.value for one in read_script(text, {}, shell) if one.name == "--nnodes"]
    assert found == (["2"] if nodes == 2 else ["4", "2"])

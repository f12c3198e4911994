"""Where a run is published, and what its pull request is told, with a stand-in for `gh`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.scripts import SCRIPTS

HEAD, NEWER = "a" * 40, "b" * 40
OFFLINE = (
    "\nTo read it without a network: https://x/runs/9#artifacts, served by "
    "`python3 -m http.server`\n"
)
GH = """#!{python}
import json, os, sys
answers = json.load(open(os.environ["ANSWERS"]))
with open(os.environ["ANSWERS"] + ".asked", "a") as log:
    log.write(json.dumps(sys.argv[1:]) + chr(10))
print(json.dumps(answers[sys.argv[2]]))
"""


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder with a `gh` that answers from a file."""
    (tmp_path / "gh").write_text(GH.format(python=sys.executable))
    (tmp_path / "gh").chmod(0o755)
    return tmp_path


def run(desk: Path, answers: dict[str, Any], *words: str) -> str:
    (desk / "answers").write_text(json.dumps(answers))
    path = f"{desk}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, str(SCRIPTS / "place.py"), *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
        env={**os.environ, "PATH": path, "ANSWERS": str(desk / "answers")},
    ).stdout


def pull(head: str = HEAD, owner: str = "us", labels: tuple[str, ...] = (), state: str = "open"):
    repository = {"full_name": f"{owner}/guide"} if owner else None
    return {
        "number": 7,
        "state": state,
        "head": {"sha": head, "repo": repository},
        "labels": [{"name": label} for label in labels],
    }


def where(desk: Path, event: dict[str, Any], answers: dict[str, Any]) -> str:
    (desk / "event").write_text(json.dumps({"repository": {"full_name": "us/guide"}, **event}))
    return run(desk, answers, "where", str(desk / "event"))


def of_a_run(owner: str, branch: str = "topic") -> dict[str, Any]:
    repository = {"owner": {"login": owner}, "full_name": f"{owner}/guide"} if owner else None
    return {
        "workflow_run": {
            "id": 99,
            "event": "pull_request",
            "head_sha": HEAD,
            "head_branch": branch,
            "head_repository": repository,
        }
    }


def of_a_comment(body: str = f"/preview {HEAD}", who: str = "us") -> dict[str, Any]:
    said = {"body": body, "user": {"login": who}}
    return {"comment": said, "issue": {"number": 7, "pull_request": {}}}


def artifact(number: int, size_in_bytes: int = 10**7) -> dict[str, int]:
    return {"id": number, "size_in_bytes": size_in_bytes}


ASKED = "repos/us/guide/pulls?state=open&head={}%3Atopic"
NUMBERED = "repos/us/guide/pulls/7"
RUNS = (
    "repos/us/guide/actions/workflows/ci.yml/runs"
    f"?event=pull_request&status=success&head_sha={HEAD}"
)
SITES = "repos/us/guide/actions/runs/99/artifacts?name=site"
MAY = "repos/us/guide/collaborators/{}/permission"
PASSED = {
    MAY.format("us"): {"permission": "admin"},
    MAY.format("mallory"): {"permission": "read"},
    RUNS: {"workflow_runs": [{"id": 99}]},
    SITES: {"artifacts": [artifact(3), artifact(5), artifact(4)]},
}
PLACED = f"folder=pr-7\ncommit={HEAD}\nrun=99\nartifact=5\n"


@pytest.mark.parametrize(
    ("owner", "found", "said"),
    [
        ("us", [pull()], PLACED),
        ("fork", [pull(owner="fork")], "why=a fork is previewed when a maintainer comments"),
        # Its label may be of an older commit, and what takes it away may not have run yet.
        ("fork", [pull(owner="fork", labels=("preview",))], "why=a fork is previewed when"),
        ("", [pull(owner="", labels=("preview",))], "why=a fork is previewed when"),
        ("us", [pull(head=NEWER)], "why=the pull request has another newest commit"),
        ("us", [], "why=no open pull request has this branch"),
        ("us", [pull(state="closed")], "why=no open pull request has this branch"),
    ],
)
def test_a_run_of_a_pull_request_is_placed(
    owner: str, found: list[Any], said: str, desk: Path
) -> None:
    answers = {ASKED.format(owner): found, **PASSED}
    assert where(desk, of_a_run(owner), answers).startswith(said)


@pytest.mark.parametrize("artifacts", [[], [artifact(3), artifact(4, 2**30)]])
def test_a_run_without_a_site_of_usual_size_is_not_published(
    artifacts: list[dict[str, int]], desk: Path
) -> None:
    answers = {ASKED.format("us"): [pull()], SITES: {"artifacts": artifacts}}
    assert where(desk, of_a_run("us"), answers).startswith("why=its run has no site")


def test_a_branch_cannot_ask_another_question(desk: Path) -> None:
    event = of_a_run("us", "x&state=all\nrun=1")
    asked = "repos/us/guide/pulls?state=open&head=us%3Ax%26state%3Dall%0Arun%3D1"
    assert where(desk, event, {asked: [pull()], **PASSED}) == PLACED


@pytest.mark.parametrize(
    ("branch", "newest", "said"),
    [
        ("main", HEAD, f"folder=\ncommit={HEAD}\nrun=99\n"),
        ("main", NEWER, "why=main has a newer commit"),
        ("other", HEAD, "why=main has a newer commit"),
    ],
)
def test_only_the_newest_commit_of_main_becomes_the_site(
    branch: str, newest: str, said: str, desk: Path
) -> None:
    event = of_a_run("us", branch)
    event["workflow_run"]["event"] = "push"
    answers = {"repos/us/guide/commits/main": {"sha": newest}, **PASSED}
    assert where(desk, event, answers).startswith(said)


@pytest.mark.parametrize(
    ("newest", "said"), [(HEAD, f"folder=v1.2\ncommit={HEAD}\nrun=99\n"), (NEWER, "why=the tag")]
)
def test_a_tag_becomes_a_version(newest: str, said: str, desk: Path) -> None:
    event = of_a_run("us", "v1.2")
    event["workflow_run"]["event"] = "push"
    answers = {"repos/us/guide/commits/tags/v1.2": {"sha": newest}, **PASSED}
    assert where(desk, event, answers).startswith(said)


OF_A_FORK = PLACED.replace("artifact", "fork=1\nartifact")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (pull(owner="fork"), OF_A_FORK),
        (pull(owner=""), OF_A_FORK),
        (pull(NEWER, owner="fork"), "why=the pull request has another newest commit"),
        (pull(owner="fork", state="closed"), "why=no open pull request"),
    ],
)
def test_a_comment_publishes_the_commit_that_it_names(
    found: dict[str, Any], said: str, desk: Path
) -> None:
    assert where(desk, of_a_comment(), {NUMBERED: found, **PASSED}).startswith(said)


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        (of_a_comment(f"/preview {HEAD[:12]}"), "why=the comment is no /preview"),
        (of_a_comment("/preview"), "why=the comment is no /preview"),
        (of_a_comment(f"/preview {HEAD} or not"), "why=the comment is no /preview"),
        (of_a_comment(who="mallory"), "why=who comments may not write"),
        ({**of_a_comment(), "issue": {"number": 7}}, "why=the comment is no /preview"),
    ],
)
def test_other_comments_publish_nothing(comment: dict[str, Any], said: str, desk: Path) -> None:
    """A label used to vouch for whatever was the newest commit at the moment of the click."""
    assert where(desk, comment, {NUMBERED: pull(owner="fork"), **PASSED}).startswith(said)


def test_a_comment_publishes_nothing_whose_tests_have_not_passed(desk: Path) -> None:
    answers = {**PASSED, NUMBERED: pull(owner="fork"), RUNS: {"workflow_runs": []}}
    assert where(desk, of_a_comment(), answers).startswith("why=no run of its own says")


def told(desk: Path, changes: str | None, comments: list[Any]) -> list[str]:
    """Return the arguments of the call that writes the comment."""
    with zipfile.ZipFile(desk / "site.zip", "w") as archive:
        archive.writestr("index.html", "x")
        if changes is not None:
            archive.writestr("changes/changes.json", changes)
    listing = "repos/us/guide/issues/7/comments"
    answers = {
        **{
            f"{listing}?per_page=100&page={n + 1}": comments[100 * n : 100 * (n + 1)]
            for n in range(len(comments) // 100 + 1)
        },
        listing: {},
        "repos/us/guide/issues/comments/5": {},
    }
    words = ("--folder", "pr-7", "--repository", "us/guide", "--commit", HEAD)
    places = ("--address", "https://us.x/guide/", "--run", "https://x/runs/9")
    run(desk, answers, "tell", str(desk / "site.zip"), *words, *places)
    asked: list[str] = json.loads((desk / "answers.asked").read_text().splitlines()[-1])
    return asked


def comment(number: int, who: str, body: str) -> dict[str, Any]:
    return {"id": number, "user": {"login": who}, "body": body}


def test_the_pull_request_gets_one_comment_that_is_kept_up_to_date(desk: Path) -> None:
    mine = comment(5, "github-actions[bot]", "<!-- preview -->\nold")
    others = [comment(3, "mallory", mine["body"]), comment(4, "github-actions[bot]", "lint")]
    assert "POST" in told(desk, None, others)
    asked = told(desk, None, [*others, mine])
    assert asked[1] == "repos/us/guide/issues/comments/5"
    assert "PATCH" in asked
    asked = told(desk, None, [comment(3, "mallory", "spam")] * 250 + [mine])
    assert asked[1] == "repos/us/guide/issues/comments/5"


def test_the_comment_counts_what_changed(desk: Path) -> None:
    body = told(desk, json.dumps({"counts": {"numbers": 12, "figures": 3}}), [])[-1]
    assert body == (
        f"body=<!-- preview -->\nPreview of {HEAD}: https://us.x/guide/pr-7/\n\n"
        f"Changed: 12 numbers, 3 figures. Report: https://us.x/guide/pr-7/changes/\n{OFFLINE}"
    )


@pytest.mark.parametrize(
    "changes",
    [
        "not json",
        "[]",
        "{}",
        '{"counts": [1]}',
        "[" * 100_000,
        '{"counts": {"numbers": "<img src=x>", "figures": true, "@everyone": 3}}',
        f'{{"counts": {{"numbers": -1, "figures": {"9" * 4000}, "pages": 1e9}}}}',
    ],
)
def test_words_of_the_build_never_reach_the_comment(changes: str, desk: Path) -> None:
    body = told(desk, changes, [])[-1]
    assert body == f"body=<!-- preview -->\nPreview of {HEAD}: https://us.x/guide/pr-7/\n{OFFLINE}"

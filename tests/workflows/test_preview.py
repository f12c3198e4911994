"""The whole path of a pull request: the steps of preview.yml, with a stand-in for GitHub.

Each step's own command runs as written there; a bare repository has the branch of the pages, and
`gh` answers from files.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.workflows.scripts import SCRIPTS
from tests.workflows.test_place import ASKED, HEAD, NUMBERED, PASSED, of_a_comment, of_a_run, pull

ROOT = SCRIPTS.parents[1]
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/preview.yml").read_text("utf-8"))
PAGE = "<!doctype html>\n<html><head></head><body>x</body></html>"
SITE = {"index.html": PAGE, "changes/changes.json": '{"counts": {"numbers": 2}}'}
GH = """#!{python}
import json, os, pathlib, sys
path, words, host = sys.argv[1:], sys.argv[2:], pathlib.Path(os.environ["HOST"])
if path[0] == "api" and words[0].endswith("/zip"):
    sys.stdout.buffer.write((host / "site.zip").read_bytes())
    sys.exit()
found = json.loads((host / "answers").read_text())[words[0]]
if "--jq" in words:
    sys.exit(print(found[words[-1].removeprefix(".")]))
if "--method" in words:
    (host / "told").write_text(words[-1])
print(json.dumps(found))
"""


class Host:
    """A repository with a branch of pages, its API's answers, and the calls it received."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.remote = folder / "us/guide.git"
        (folder / "gh").write_text(GH.format(python=sys.executable))
        (folder / "gh").chmod(0o755)
        git(folder, "init", "--quiet", "--bare", str(self.remote))
        git(folder, "init", "--quiet", "--initial-branch=gh-pages", "work")
        (folder / "work/index.html").write_text("the site")
        git(folder / "work", "add", "--all")
        git(folder / "work", "commit", "--quiet", "--message", "site")
        git(folder / "work", "push", "--quiet", str(self.remote), "gh-pages")

    def run(
        self,
        job: str,
        event: Mapping[str, Any],
        answers: Mapping[str, Any] | None = None,
        site: Mapping[str, str] = SITE,
    ) -> int:
        """Run the steps of a job until one fails; return the status of the last."""
        with zipfile.ZipFile(self.folder / "site.zip", "w") as archive:
            for path, content in site.items():
                archive.writestr(path, content)
        listing = "repos/us/guide/issues/7/comments"
        told = {f"{listing}?per_page=100&page=1": [], listing: {}}
        (self.folder / "answers").write_text(json.dumps({**told, **(answers or {})}))
        (self.folder / "event").write_text(
            json.dumps({"repository": {"full_name": "us/guide"}, **event})
        )
        (self.folder / "output").write_text("")
        for step in WORKFLOW["jobs"][job]["steps"]:
            if "run" in step and self._is_due(step.get("if")):
                status = self._step(step)
                if status:
                    return status
        return 0

    def _step(self, step: Mapping[str, Any]) -> int:
        named = {**WORKFLOW["env"], **step.get("env", {})}
        environment = {
            **os.environ,
            **{name: self._filled(str(value)) for name, value in named.items()},
            "PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}",
            "HOST": str(self.folder),
            "RUNNER_TEMP": str(self.folder / "temporary"),
            "GITHUB_EVENT_PATH": str(self.folder / "event"),
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_REPOSITORY": "us/guide",
            "GITHUB_SERVER_URL": "https://host.example",
        }
        (self.folder / "temporary").mkdir(exist_ok=True)
        command = ["bash", "-e", "-c", step["run"]]
        ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=30)
        return ran.returncode

    @property
    def outputs(self) -> dict[str, str]:
        lines = (self.folder / "output").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def _is_due(self, condition: str | None) -> bool:
        placed = self.outputs
        return {
            None: True,
            "steps.place.outputs.run": bool(placed.get("run")),
            "startsWith(steps.place.outputs.folder, 'pr-')": placed.get("folder", "")[:3] == "pr-",
        }[condition]

    def _filled(self, text: str) -> str:
        known = {
            "github.token": "secret",
            "github.server_url": str(self.folder),
            "github.repository": "us/guide",
            "github.repository_owner": "us",
            "github.event.repository.name": "guide",
            "github.event.number": "7",
            "steps.place.outputs.fork": "",
            **{f"steps.place.outputs.{name}": said for name, said in self.outputs.items()},
        }
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known[found[1]], text)

    @property
    def pages(self) -> set[str]:
        listed = git(self.remote, "ls-tree", "-r", "--name-only", "gh-pages")
        return set(listed.split()) - {".nojekyll", "previews.json"}

    @property
    def told(self) -> str:
        file = self.folder / "told"
        return file.read_text() if file.exists() else ""


def git(where: Path, *words: str) -> str:
    who = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    command = ["git", "-C", str(where), *who, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


OURS = {ASKED.format("us"): [pull()], NUMBERED: pull(), **PASSED}
FORKS = {NUMBERED: pull(owner="fork"), **PASSED}
PREVIEW = {"index.html", "pr-7/index.html", "pr-7/changes/changes.json"}


def test_a_branch_of_ours_is_published_told_and_removed(host: Host) -> None:
    assert host.run("publish", of_a_run("us"), OURS) == 0
    assert host.pages == PREVIEW
    assert host.told == (
        f"body=<!-- preview -->\nPreview of {HEAD}: https://us.github.io/guide/pr-7/\n\n"
        "Changed: 2 numbers. Report: https://us.github.io/guide/pr-7/changes/\n\n"
        "To read it without a network: https://host.example/us/guide/actions/runs/99#artifacts, "
        "served by `python3 -m http.server`\n"
    )
    assert host.run("remove", {}) == 0
    assert host.pages == {"index.html"}


def test_a_fork_is_published_by_the_comment_and_not_by_its_next_push(host: Host) -> None:
    later = {ASKED.format("fork"): [pull(owner="fork")], **FORKS}
    assert host.run("publish", of_a_run("fork"), later) == 0
    assert host.pages == {"index.html"}
    assert host.told == ""
    assert host.run("publish", of_a_comment(), FORKS) == 0
    assert host.pages == PREVIEW
    assert "the word that its tests passed are the fork's own" in host.told


def test_a_pull_request_that_is_closed_while_it_is_published_stays_away(host: Host) -> None:
    answers = {**OURS, NUMBERED: pull(state="closed")}
    assert host.run("publish", of_a_run("us"), answers) == 0
    assert host.pages == {"index.html"}


@pytest.mark.parametrize(
    "hostile", ["x/.git/config", "../index.html", "run.sh", "a\nb.html", "CNAME"]
)
def test_a_hostile_site_is_not_published_and_nothing_is_told(hostile: str, host: Host) -> None:
    assert host.run("publish", of_a_comment(), FORKS, {**SITE, hostile: "x"}) == 1
    assert host.pages == {"index.html"}
    assert host.told == ""

"""Where a finished run belongs among the published pages, and what its pull request is told.

Runs from the main branch with the standard library and the `gh` command; what it reads of a pull
request's build is data, of which only whole numbers are repeated.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

COMMAND = re.compile(r"\s*/preview\s+([0-9a-f]{40})\s*")
"""What a maintainer writes below a fork's pull request: the commit that was seen, whole."""
WRITERS = ("admin", "maintain", "write")
MARK = "<!-- preview -->"
COUNTED = ("numbers", "figures", "pictures", "pages", "added", "removed")
MOST_COUNTED = 10**6
MOST_BYTES = 2**20
MOST_BYTES_OF_A_SITE = 256 * 2**20
TAG = re.compile(r"v(0|[1-9][0-9]{0,3})(\.(0|[1-9][0-9]{0,3})){1,2}")


def place(event: Mapping[str, Any]) -> dict[str, str]:
    """The folder, commit, run and artifact to publish, or `why` there is nothing to publish.

    `event` is the payload of `workflow_run` or of a comment's `issue_comment`.
    """
    found = _belongs(event["repository"]["full_name"], event)
    if "run" in found:
        site = _site(event["repository"]["full_name"], found["run"])
        return found | {"artifact": site} if site else {"why": "its run has no site of usual size"}
    return found


def _belongs(repository: str, event: Mapping[str, Any]) -> dict[str, str]:
    """Folder, commit and run.

    Branches of the repository itself are previewed at once.  A fork's commit is when a maintainer
    names it in a comment: whatever is pushed between the look and the comment, or after it, is
    another commit.
    """
    run = event.get("workflow_run")
    if run and run["event"] == "push" and TAG.fullmatch(str(run["head_branch"])):
        tagged = _api(f"repos/{repository}/commits/tags/{run['head_branch']}")["sha"]
        if tagged != run["head_sha"]:
            return {"why": "the tag has moved, and its newer run publishes it"}
        return {"folder": run["head_branch"], "commit": tagged, "run": str(int(run["id"]))}
    if run and run["event"] == "push":
        newest = _api(f"repos/{repository}/commits/main")["sha"]
        if run["head_branch"] != "main" or run["head_sha"] != newest:
            return {"why": "main has a newer commit, whose run publishes it"}
        return {"folder": "", "commit": newest, "run": str(int(run["id"]))}
    if run:
        if (run["head_repository"] or {}).get("full_name") != repository:
            return {"why": "a fork is previewed when a maintainer comments: /preview COMMIT"}
        commit, number_of_run = run["head_sha"], str(int(run["id"]))
        head = quote(f"{run['head_repository']['owner']['login']}:{run['head_branch']}", safe="")
        found = _api(f"repos/{repository}/pulls?state=open&head={head}")
        pull = found[0] if found else None
    else:
        command = COMMAND.fullmatch(event["comment"]["body"] or "")
        if not command or "pull_request" not in event["issue"]:
            return {"why": "the comment is no /preview with the 40 digits of a commit"}
        who = quote(event["comment"]["user"]["login"], safe="")
        if _api(f"repos/{repository}/collaborators/{who}/permission")["permission"] not in WRITERS:
            return {"why": "who comments may not write to the repository"}
        commit = command[1]
        pull = _api(f"repos/{repository}/pulls/{int(event['issue']['number'])}")
        number_of_run = _passed(repository, commit)
    if not pull or pull["state"] != "open":
        return {"why": "no open pull request has this branch"}
    if pull["head"]["sha"] != commit:
        return {"why": "the pull request has another newest commit than that"}
    if not number_of_run:
        return {"why": "no run of its own says that its tests have passed; comment when one does"}
    fork = (pull["head"]["repo"] or {}).get("full_name") != repository
    return {
        "folder": f"pr-{int(pull['number'])}",
        "commit": commit,
        "run": number_of_run,
        **({"fork": "1"} if fork else {}),
    }


def _passed(repository: str, commit: str) -> str:
    """The newest run that says that its tests passed on a commit, if there is one.

    The tests are the commit's own, and so is what they say.
    """
    question = f"event=pull_request&status=success&head_sha={commit}"
    runs = _api(f"repos/{repository}/actions/workflows/ci.yml/runs?{question}")["workflow_runs"]
    return str(int(runs[0]["id"])) if runs else ""


def _site(repository: str, run: str) -> str:
    """The newest artifact `site` of a run, unless it is so large that it is none."""
    found = _api(f"repos/{repository}/actions/runs/{run}/artifacts?name=site")["artifacts"]
    newest = max(found, key=lambda artifact: int(artifact["id"]), default=None)
    fits = newest and newest["size_in_bytes"] <= MOST_BYTES_OF_A_SITE
    return str(int(newest["id"])) if fits else ""


def comment(
    archive: Path, folder: str, address: str, commit: str, run: str, fork: bool = False
) -> str:
    """What the pull request is told: the address, and how many things changed.

    `run` is the address of the run, which keeps the site as an archive for a week.
    """
    counts = _counts(archive)
    said = [
        f"{count} {what}"
        for what in COUNTED
        if type(count := counts.get(what)) is int and 0 <= count < MOST_COUNTED
    ]
    where = f"{address.rstrip('/')}/{folder}/"
    changed = f"\n\nChanged: {', '.join(said)}. Report: {where}changes/" if said else ""
    offline = f"To read it without a network: {run}#artifacts, served by `python3 -m http.server`"
    word = (
        "\n\nThe pages, the counts and the word that its tests passed are the fork's own."
        if fork
        else ""
    )
    return f"{MARK}\nPreview of {commit}: {where}{changed}{word}\n\n{offline}\n"


def _counts(archive: Path) -> Mapping[str, object]:
    with zipfile.ZipFile(archive) as opened:
        if "changes/changes.json" not in opened.namelist():
            return {}
        with opened.open("changes/changes.json") as file:
            try:
                counts = json.loads(file.read(MOST_BYTES))["counts"]
            except (ValueError, KeyError, TypeError, RecursionError):
                return {}
    return counts if isinstance(counts, dict) else {}


def tell(repository: str, number: int, body: str) -> None:
    """Create the comment of the previews, or update it if it exists."""
    of_the_pull = f"repos/{repository}/issues/{number}/comments"
    mine = [
        found["id"]
        for found in _all(of_the_pull)
        if found["user"]["login"] == "github-actions[bot]" and found["body"].startswith(MARK)
    ]
    where = f"repos/{repository}/issues/comments/{int(mine[0])}" if mine else of_the_pull
    _api(where, "--method", "PATCH" if mine else "POST", "--raw-field", f"body={body}")


def _all(path: str) -> Iterator[Any]:
    """Every item of a listing: after a hundred comments of others ours is on a later page."""
    for page in itertools.count(1):
        found = _api(f"{path}?per_page=100&page={page}")
        yield from found
        if len(found) < 100:
            return


def _api(path: str, *words: str) -> Any:
    ran = subprocess.run(["gh", "api", path, *words], capture_output=True, timeout=60, check=True)
    return json.loads(ran.stdout)


def main(words: list[str] | None = None) -> int:
    """`where EVENT.json` prints outputs of a step; `tell SITE.zip` writes the comment."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("where").add_argument("event", type=Path)
    options = verbs.add_parser("tell")
    options.add_argument("archive", type=Path)
    for name in ("repository", "folder", "commit", "address", "run"):
        options.add_argument(f"--{name}", required=True)
    options.add_argument("--fork", default="", help="1 where the pull request is of a fork")
    asked = parser.parse_args(words)
    if asked.verb == "where":
        event = json.loads(asked.event.read_text(encoding="utf-8"))
        for name, said in place(event).items():
            print(f"{name}={said}")
    else:
        body = comment(
            asked.archive, asked.folder, asked.address, asked.commit, asked.run, bool(asked.fork)
        )
        tell(asked.repository, int(asked.folder.removeprefix("pr-")), body)
    return 0


if __name__ == "__main__":
    sys.exit(main())

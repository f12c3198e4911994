"""Where the browser is searched for, in which order, and what is installed if there is none."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.browser import chromium


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, list[str]]:
    """A machine without a browser, run by a user; tests add to it.

    `path` holds names found on PATH, `working` the executables that render, `earlier` Playwright's
    downloads, and `steps` collects the installation steps that ran.
    """
    state: dict[str, list[str]] = {"path": [], "working": [], "earlier": [], "steps": []}
    monkeypatch.delenv("CHROME_PATH", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(
        chromium.shutil, "which", lambda name: f"/bin/{name}" if name in state["path"] else None
    )
    monkeypatch.setattr(chromium, "downloaded", lambda: iter(state["earlier"]))
    monkeypatch.setattr(chromium, "starts", lambda path: path in state["working"])
    monkeypatch.setattr(
        chromium, "install_step", lambda *command: state["steps"].append(" ".join(command))
    )
    return state


def test_chrome_path_is_preferred_to_path(
    machine: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHROME_PATH", "/opt/mine")
    machine["path"] = ["chromium"]
    machine["working"] = ["/opt/mine", "/bin/chromium"]
    assert chromium.find() == "/opt/mine"


def test_the_given_path_is_not_tried_again(
    machine: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine["path"], machine["working"] = ["chromium"], ["/bin/chromium"]
    assert chromium.given() == "/bin/chromium"
    monkeypatch.setenv("CHROME_PATH", "/opt/mine")
    assert chromium.given() == "/opt/mine"


def test_path_is_searched_when_chrome_path_does_not_render(
    machine: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHROME_PATH", "/opt/broken")
    machine["path"] = ["google-chrome"]
    machine["working"] = ["/bin/google-chrome"]
    assert chromium.find() == "/bin/google-chrome"


def test_candidates_come_in_order(
    machine: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHROME_PATH", "/opt/mine")
    machine["path"] = ["google-chrome", "chromium", "chromium-headless-shell"]
    machine["earlier"] = ["/cache/chrome"]
    assert list(chromium.candidates()) == [
        "/opt/mine",
        "/bin/chromium-headless-shell",
        "/bin/chromium",
        "/bin/google-chrome",
        "/cache/chrome",
    ]


def test_stub_on_path_gives_way_to_an_earlier_download(machine: dict[str, list[str]]) -> None:
    machine["path"] = ["chromium-browser"]
    machine["earlier"] = machine["working"] = ["/cache/chrome"]
    assert chromium.find() == "/cache/chrome"


def test_nothing_is_installed_where_one_is_found(machine: dict[str, list[str]]) -> None:
    machine["path"], machine["working"] = ["chromium"], ["/bin/chromium"]
    assert chromium.provide() == "/bin/chromium"
    assert machine["steps"] == []


@pytest.mark.parametrize("manager", chromium.PACKAGE_MANAGERS)
def test_root_installs_the_systems_package(
    machine: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch, manager: str
) -> None:
    def install(*command: str) -> None:
        machine["steps"].append(" ".join(command))
        machine["path"].append("chromium")

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(chromium, "install_step", install)
    machine["path"], machine["working"] = [manager], ["/bin/chromium"]
    assert chromium.provide() == "/bin/chromium"
    assert {step.split()[0] for step in machine["steps"]} == {manager}
    assert {"chromium", "chromium-headless-shell"} & set(machine["steps"][-1].split())


def test_root_downloads_where_the_package_did_not_help(
    machine: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    machine["path"] = ["apt-get"]
    assert chromium.provide() is None
    tools = [step.removeprefix(" ".join(chromium.PLAYWRIGHT)) for step in machine["steps"]]
    assert [tool.split()[0] for tool in tools] == ["apt-get", "apt-get", "install-deps", "install"]


def test_user_downloads_without_touching_the_system(machine: dict[str, list[str]]) -> None:
    machine["path"] = ["apt-get", "dnf"]
    assert chromium.provide() is None
    assert machine["steps"] == [
        f"{' '.join(chromium.PLAYWRIGHT)} install --only-shell chromium",
    ]


@pytest.mark.parametrize(("user", "expected"), [(0, True), (1000, False)])
def test_sandbox_is_off_only_for_root(
    monkeypatch: pytest.MonkeyPatch, user: int, expected: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert ("--no-sandbox" in chromium.flags()) is expected


def test_downloads_are_found_where_playwright_says_they_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    executable = tmp_path / "chromium_headless_shell-1" / "linux" / "headless_shell"
    executable.parent.mkdir(parents=True)
    executable.touch()
    plan = (
        f"Chromium (playwright v1)\n  Install location:    {tmp_path / 'chromium-1'}\n"
        f"Shell\n  Install location:    {executable.parents[1]}\n  Download url: none\n"
    )
    monkeypatch.setattr(chromium, "run", lambda *command, timeout_s: (0, plan))
    assert list(chromium.downloaded()) == [str(executable)]


def test_program_that_prints_no_page_is_no_browser(capsys: pytest.CaptureFixture[str]) -> None:
    assert not chromium.starts("/bin/true")
    assert "/bin/true does not render a page" in capsys.readouterr().err


def test_missing_program_is_no_browser() -> None:
    assert not chromium.starts("/nonexistent/chromium")


def test_command_and_its_children_are_stopped_in_time() -> None:
    """The output ends when no process is left that could write to it."""
    late = "(sleep 20; echo late) & sleep 20; echo late"
    code, output = chromium.run("/bin/sh", "-c", late, timeout_s=0.2)
    assert code == 124
    assert output == "\nstopped after 0.2 s"


def test_command_is_never_asked_anything() -> None:
    code, output = chromium.run(sys.executable, "-c", "input()", timeout_s=30)
    assert code == 1
    assert "EOFError" in output


def test_main_prints_only_the_path(
    machine: dict[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    machine["path"], machine["working"] = ["chromium"], ["/bin/chromium"]
    assert chromium.main() == 0
    assert capsys.readouterr().out == "/bin/chromium\n"


def test_main_names_the_remedy_and_fails(
    machine: dict[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert chromium.main() == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "CHROME_PATH" in err

"""The site that `figgen start` writes, about kettles."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.started.kettles import put
from tests.warm import run


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as it was written; no test changes it."""
    folder = tmp_path_factory.mktemp("started")
    assert run(folder, "-m", "figgen", "start", "kettles").returncode == 0
    return folder / "kettles"


@pytest.fixture
def site(started: Path, tmp_path: Path) -> Path:
    return shutil.copytree(started, tmp_path / "kettles")


@pytest.fixture(params=("kettles.toml", "data/by_maker/kettles.toml"))
def catalog(request: pytest.FixtureRequest, site: Path) -> str:
    """Return the path of the site's catalog: next to the module, or in a folder that it names."""
    beside, path = "kettles.toml", str(request.param)
    if path != beside:
        (site / path).parent.mkdir(parents=True)
        (site / beside).rename(site / path)
        put(site / "kettle.py", '.with_name("kettles.toml")', f'.parent / "{path}"')
    return path

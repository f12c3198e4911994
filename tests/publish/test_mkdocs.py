"""Undocumented parts of MkDocs that the plug-in relies on.

Each was last checked with the version below. When a newer version fails here, check what each test
says the plug-in relies on, and then update the version.
"""

from __future__ import annotations

import inspect
from importlib import metadata
from pathlib import Path

import pytest
from mkdocs.commands import build
from mkdocs.config.base import load_config
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.livereload import LiveReloadServer
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.theme import Theme

from figgen.serving.templates import with_listed_templates

CHECKED_WITH = "1.6.1"


@pytest.fixture
def config(tmp_path: Path) -> MkDocsConfig:
    (tmp_path / "docs").mkdir()
    (tmp_path / "mkdocs.yml").write_text("site_name: Site\ntheme: {name: mkdocs}\n")
    found = load_config(str(tmp_path / "mkdocs.yml"))
    found.plugins._current_plugin = "tests"  # what makes a file is asked for during an event only
    return found


def test_mkdocs_is_the_version_that_these_tests_were_written_for() -> None:
    assert metadata.version("mkdocs") == CHECKED_WITH


def test_a_build_cleans_the_sites_folder_by_the_function_that_serving_replaces() -> None:
    """`figgen/plugin/serving.py` replaces it by its own function, so that unchanged
    pages are kept."""
    assert inspect.getsource(build.build).count("utils.clean_directory(config.site_dir)") == 1
    assert inspect.getsource(build).count("clean_directory(") == 1


def test_a_skipped_page_is_told_in_the_words_that_serving_leaves_out() -> None:
    """`figgen/plugin/serving.py` filters that message from the log of builds."""
    assert 'log.info(f"Page skipped' in inspect.getsource(build)


def test_a_page_remembers_the_title_that_its_text_begins_with(config: MkDocsConfig) -> None:
    """`figgen.publish.kept_pages` keeps it with the page: the public title may be the menu's."""
    file = File.generated(config, "page.md", content="# Of the text\n")
    for title, shown in ((None, "Of the text"), ("Of the menu", "Of the menu")):
        page = Page(title, file, config)
        page.read_source(config)
        page.render(config, Files([file]))
        assert (page._title_from_render, page.title) == ("Of the text", shown)


def test_a_file_that_is_generated_has_no_path_of_a_source(config: MkDocsConfig) -> None:
    """By this, `figgen.serving.files` knows whether to compare the content or the file's date."""
    file = File.generated(config, "a.css", content="a")
    assert (file.abs_src_path, file.content_bytes) == (None, b"a")


def test_converting_a_page_is_the_events_that_the_plug_in_sends() -> None:
    """`figgen/plugin/host.py` converts pages in other processes by the same steps as MkDocs."""
    steps = inspect.getsource(build._populate_page)
    order = ["on_pre_page(", "read_source(", "on_page_markdown(", ".render(", "on_page_content("]
    assert sorted(order, key=steps.index) == order


def test_a_theme_publishes_the_same_files_without_a_look_into_its_hidden_folders(
    config: MkDocsConfig, tmp_path: Path
) -> None:
    """`figgen.serving.templates` lists the templates in place of the theme's environment."""
    for name in (".icons/a.svg", "assets/.b/c.svg", "assets/d.svg", ".e.svg"):
        path = tmp_path / "custom" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    theme = Theme("material", custom_dir=str(tmp_path / "custom"))
    config.theme, found = theme, []
    for change in (lambda _: None, with_listed_templates):
        change(theme)
        files, env = Files([]), theme.get_env()
        files.add_files_from_theme(env, config)
        found.append((list(files.src_uris), "base.html" in env.list_templates()))
        assert env.get_template("base.html")
    assert found[0] == found[1]
    assert "assets/d.svg" in found[0][0]
    assert not any(".icons" in name for name in theme.get_env().list_templates())


def test_a_server_watches_again_with_another_observer(tmp_path: Path) -> None:
    """`figgen/plugin/serving.py` gives it an observer that reports changes."""
    server = LiveReloadServer(lambda: None, host="127.0.0.1", port=0, root=str(tmp_path))
    server.watch(str(tmp_path))
    server.unwatch(str(tmp_path))
    with pytest.raises(KeyError):  # not watched, as a theme's folder usually
        server.unwatch(str(tmp_path))
    assert server.build_delay > 0.05
    server.observer.stop()
    server.server_close()


def test_a_server_answers_requests_and_counts_builds_as_the_error_page_expects(
    tmp_path: Path,
) -> None:
    """`figgen.serving.refused` replaces both methods and waits for the build in progress."""
    server = LiveReloadServer(lambda: None, host="127.0.0.1", port=0, root=str(tmp_path))
    try:
        assert server._visible_epoch == server._wanted_epoch
        page = server._inject_js_into_html(b"<body></body>", server._visible_epoch)
        assert f"livereload({server._visible_epoch}, ".encode() in page
        assert list(inspect.signature(server._serve_request).parameters) == [
            "environ",
            "start_response",
        ]
        assert "self.builder(" in inspect.getsource(LiveReloadServer._build_loop)
        assert "with self._epoch_cond" in inspect.getsource(LiveReloadServer._build_loop)
    finally:
        server.server_close()

"""Makes the fixtures of the browser tests available to benchmarks."""

from tests.browser.conftest import scripts_address

__all__ = ["scripts_address"]

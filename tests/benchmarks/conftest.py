"""What benchmarks in the browser need of the browser's tests."""

from tests.browser.conftest import scripts_address

__all__ = ["scripts_address"]

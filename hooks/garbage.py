"""Builds without looking for garbage: millions of objects are made and hardly any in circles."""

from __future__ import annotations

import gc
from typing import Any


def on_config(config: Any) -> None:
    gc.disable()


def on_post_build(**_: Any) -> None:
    gc.enable()


def on_build_error(**_: Any) -> None:
    gc.enable()

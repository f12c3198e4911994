"""Finds a model by its name, its sizes, or the `config.json` stored with its weights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from figgen import catalog
from figgen.errors import InputError
from figgen.models.shape.model_shape import ModelShape
from figgen.scenarios.architectures.file_text import read_model_text
from figgen.scenarios.options.own_model import OwnModel, is_sizes, model_of_sizes


def named_model(name: str) -> catalog.Model | OwnModel:
    """Return the model for a catalog name, a file name that ends in `.json`, or a text of sizes.

    Raises InputError for an unknown name, with the nearest names; for a file that is not a
    config.json; and for sizes that do not define a shape.
    """
    if is_sizes(name):
        return model_of_sizes(name)
    return model_from_file(name) if name.endswith(".json") else catalog.model(name)


def model_from_file(path: str) -> OwnModel:
    """Return the model of a `config.json`. Raises InputError for any other file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"model {path!r}", expected="a config.json", got=str(error)) from None
    shape, notes = read_model_text(text)
    return OwnModel(name=path, title=path, shape=shape, notes=tuple(notes))


def shape_of_config(config: Mapping[str, Any]) -> ModelShape:
    """Return the shape of a configuration. Raises InputError as `read_model_text` does."""
    return read_model_text(json.dumps(config))[0]

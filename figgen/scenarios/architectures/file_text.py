"""Reads the text of a `config.json`."""

from __future__ import annotations

from figgen.errors import InputError
from figgen.models.shape.model_shape import ModelShape
from figgen.scenarios.architectures.fields import fields_of
from figgen.scenarios.architectures.shape_of_file import shape_of_fields
from figgen.scenarios.texts.flow import read_flow


def is_model_file(text: str) -> bool:
    """Whether a text is the `config.json` of a model."""
    if not text.strip().startswith("{"):
        return False
    try:
        names = [one.name for one in read_flow(text, "")[0]]
    except InputError:
        return False
    return any(name in ("model_type", "architectures", "architectures.0") for name in names)


def read_model_text(text: str) -> tuple[ModelShape, list[str]]:
    """Return the shape that a `config.json` describes, and notes on what is not counted.

    Raises InputError for any other text, and for one that does not determine a shape.
    """
    if not text.strip().startswith("{"):
        raise InputError("the model's file", expected="a config.json", got=text.strip()[:40])
    try:
        entries, end = read_flow(text, "")
        if text[end:].strip():
            raise InputError("the text", expected="nothing after its object", got=text[end:][:40])
        fields = fields_of(entries)
    except InputError as error:
        raise InputError(
            "the model's file", expected=f"a config.json ({error.expected})", got=error.got
        ) from None
    return shape_of_fields(fields), fields.notes

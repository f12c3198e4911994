"""Models named in a file have the sizes in their own files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from figgen.scenarios.architectures.kinds import KINDS
from figgen.scenarios.options.own_model import model_of_sizes
from figgen.scenarios.taking.job import read_job
from figgen.scenarios.taking.options import options_of, own_names
from figgen.scenarios.taking.published import PLAIN, PUBLISHED, published_sizes
from figgen.scenarios.taking.sizes import NORMED

HERE = Path(__file__).parent
ORACLE = json.loads((HERE.parent / "oracles" / "published_sizes.json").read_text("utf-8"))


@pytest.mark.parametrize("name", ORACLE["litgpt"])
def test_sizes_of_published_models_are_those_of_litgpt(name: str) -> None:
    sizes = published_sizes(name)
    if "mini" in name:
        assert not sizes, "another model than the one that its name begins with"
        return
    row = ORACLE["litgpt"][name]
    expected = dict(zip(PLAIN, row, strict=True))
    expected["head_dim"] = row[4] or row[1] // row[2]
    assert {size: sizes[size] for size in PLAIN} == expected


@pytest.mark.parametrize("name", ORACLE["totals"])
def test_parameters_of_published_models_are_those_of_their_weights(name: str) -> None:
    job = read_job(
        f"base_model: {name}\nmicro_batch_size: 1\nsequence_len: 4096\n", {}, own_names()
    )
    model = model_of_sizes(str(options_of(job)["model"]))
    assert model.parameters == ORACLE["totals"][name]


def test_a_longer_name_is_found_before_one_that_it_begins_with() -> None:
    names = [name for name, _ in PUBLISHED]
    for at, name in enumerate(names):
        assert not any(name.startswith(before) for before in names[:at]), name


def test_kinds_that_always_have_norms_are_those_of_model_files() -> None:
    kinds = {name: kind for name, kind in KINDS.items() if not kind.qk_norm_field}
    always = {name: kind.qk_norm for name, kind in kinds.items() if kind.qk_norm != "none"}
    assert always == {name: norm for norm, names in NORMED.items() for name in names.split()}

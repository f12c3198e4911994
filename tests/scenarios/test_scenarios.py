"""What a preset, a run and sizes mean and assume, compared with papers and computed by hand."""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, fields, replace

import pytest

from figgen import catalog
from figgen.catalog.load import content
from figgen.errors import InputError
from figgen.models.machine.layout import layout
from figgen.models.pipeline.schedules import SCHEDULES
from figgen.models.setup.training_setup import CONTEXT_EXCHANGES, ZERO_STAGES, TrainingSetup
from figgen.scenarios.options.assumptions import FILE, assumptions, known_of, read_assumptions
from figgen.scenarios.options.option import QUESTIONS
from figgen.scenarios.options.resolve import SIZES, parallel_layout, resolve, training_step
from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.options.schema import GROUPS, OPTIONS
from figgen.scenarios.options.written import written_options, written_scenario
from figgen.scenarios.runs.software import SOFTWARE, memory_of, software_of
from figgen.scenarios.tools.data import configurations


def test_every_choice_of_a_step_and_a_layout_is_an_option() -> None:
    setup = {field.name for field in fields(TrainingSetup)} - {"shape", "parallel", "framework"}
    assert setup | set(inspect.signature(layout).parameters) <= OPTIONS.keys()


def test_defaults_are_those_of_the_models_and_can_be_chosen() -> None:
    for field in fields(TrainingSetup):
        if field.default is not MISSING and field.name not in ("recipe", "framework"):
            assert OPTIONS[field.name].default == field.default
    assert memory_of(SOFTWARE) == TrainingSetup.__dataclass_fields__["framework"].default
    for option in OPTIONS.values():
        if option.default is not None:
            assert option.checked(option.default) == option.default


def test_choices_are_all_that_the_models_take_and_pass_their_checks() -> None:
    assert list(OPTIONS["schedule"].choices()) == list(SCHEDULES)
    assert list(OPTIONS["zero_stage"].choices()) == list(map(str, ZERO_STAGES))
    assert list(OPTIONS["context_exchange"].choices()) == list(CONTEXT_EXCHANGES)
    for option in OPTIONS.values():
        for name, words in (option.choices() if option.choices else {}).items():
            assert words, f"{option.name}={name} has no words"
            option.read(name)


def test_names_of_options_are_unique_wherever_they_are_written() -> None:
    for names in ("address_key", "command_flag", "label"):
        assert len({getattr(option, names) for option in OPTIONS.values()}) == len(OPTIONS)
    assert {option.group for option in OPTIONS.values()} == set(GROUPS)
    assert {question for option in OPTIONS.values() for question in option.asked_by} == set(
        QUESTIONS
    )


def test_forms_get_every_option_with_its_default_limits_and_words() -> None:
    told = {option["name"]: option for option in configurations()["options"]}
    assert list(told) == list(OPTIONS)
    assert [name for name, _ in told["recipe"]["choices"]] == list(OPTIONS["recipe"].choices())
    assert (told["reserve_bytes"]["unit"], told["reserve_bytes"]["scale"]) == ("GB", 1e9)
    assert (told["zero_stage"]["low"], told["zero_stage"]["high"]) == (0, 3)
    assert told["model"]["required"]


@pytest.mark.parametrize(
    ("chosen", "key", "message"),
    [
        ({"modle": "x"}, "modle", "did you mean model"),
        ({"framework": "nanotron"}, "framework", "did you mean software"),
        ({"software": "nanotrn"}, "software", "did you mean nanotron"),
        ({"tp": 0}, "tp", "a whole number from 1 to 1,048,576, got 0"),
        ({"tp": True}, "tp", "a whole number"),
        ({"zero_stage": 4}, "zero_stage", "from 0 to 3, got 4"),
        ({"compute_efficiency": float("nan")}, "compute_efficiency", "from 0.01 to 1, got nan"),
        ({"dropout": "on"}, "dropout", "on or off, got 'on'"),
        ({"recompute": "everything"}, "recompute", "unknown module to recompute"),
        ({"schedule": "1f2b"}, "schedule", "did you mean 1f1b"),
        ({"model": ""}, "model", "text"),
        ({"layers_per_stage": (8, -1)}, "layers_per_stage", "counts such as 8,9,9,6"),
        ({"layers_per_stage": "8,9"}, "layers_per_stage", "counts such as 8,9,9,6"),
    ],
)
def test_a_value_that_cannot_be_is_refused_under_its_name(
    chosen: dict[str, object], key: str, message: str
) -> None:
    with pytest.raises(InputError, match=message) as refused:
        scenario(**chosen)  # type: ignore[arg-type]
    assert refused.value.key == key


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("flash_attention", "on", True),
        ("flash_attention", "off", False),
        ("tp", "8", 8),
        ("layers_per_stage", "8,9,0", (8, 9, 0)),
        ("recompute", "mlp", "mlp"),
    ],
)
def test_what_is_written_is_read_as_its_kind(name: str, text: str, value: object) -> None:
    assert OPTIONS[name].read(text) == value
    assert type(OPTIONS[name].read(text)) is type(value)


@pytest.mark.parametrize("name", ["tp", "compute_efficiency", "nic"])
@pytest.mark.parametrize("value", [None, [], {}, True, b"1", (1,)])
def test_what_is_of_no_kind_is_refused(name: str, value: object) -> None:
    with pytest.raises(InputError):
        OPTIONS[name].checked(value)


def test_what_is_chosen_goes_over_a_preset_and_nothing_takes_it_back() -> None:
    asked = scenario(preset="bloom-176b")
    assert resolve(asked.but(tp=8)).setup.parallel.tp == 8
    assert asked.but(tp=8).but(tp=None) == asked
    assert resolve(asked.but(microbatches=7)).setup.microbatches == 7
    assert resolve(asked.but(global_batch=4096)).setup.global_batch == 4096
    assert asked.but(tp=8, pp=6) == asked.but(pp=6).but(tp=8)


def test_presets_of_every_kind_start_a_scenario() -> None:
    node = training_step(preset="h100-ndr", model="llama-3-8b", nodes=2)
    same = training_step(
        model="llama-3-8b", nodes=2, gpus_per_node=8, accelerator="h100-sxm-80gb", nic="ib-ndr"
    )
    assert (node.setup, node.cluster) == (same.setup, same.cluster)
    step = training_step(preset="map-64", model="llama-3-70b")
    assert step.setup.microbatches == 4 * 2, "four for each stage of the pipeline"
    mapped = step.setup.parallel
    assert mapped == parallel_layout(preset="map-64")
    assert (mapped.tp, mapped.pp, mapped.dp) == (8, 2, 4)
    for missing in ({"preset": "map-64"}, {"preset": "h100-ndr", "model": "llama-3-8b"}):
        with pytest.raises(InputError, match="expected a value"):
            training_step(**missing)  # type: ignore[arg-type]


def test_pages_write_the_same_scenario_in_words() -> None:
    written = written_scenario(
        model="llama-3-8b", sizes="nodes=2 gpus_per_node=8 tp=2", options="dropout=on chunks=2"
    )
    assert written == scenario(
        model="llama-3-8b", nodes=2, gpus_per_node=8, tp=2, dropout=True, chunks=2
    )
    for text in ("tp=8", "chunks", "chunks=", "chunks=two"):
        with pytest.raises(InputError) as refused:
            written_options(text)
        assert refused.value.key == "options"


def test_what_a_report_says_is_published_and_what_replaces_it_is_assumed() -> None:
    """Llama 3: section 3.3; DeepSeek-V3: section 3.2.1; MegaScale prints stage 2, taken as 1."""
    llama, said = known_of(catalog.run("llama-3-405b-131k"))
    assert (llama["order"], llama["nic"], llama["schedule"]) == (
        "llama3", "roce-400g", "interleaved-1f1b",
    )  # fmt: skip
    assert {"order", "nic", "context_exchange"} <= said
    assert "schedule" not in said
    assert "schedule" in known_of(catalog.run("deepseek-v3"))[1]
    halved, said = known_of(replace(catalog.run("megascale-175b-12288"), virtual_stages=2))
    assert (halved["schedule"], halved["chunks"]) == ("interleaved-1f1b", 2)
    assert {"schedule", "chunks"} <= said
    stage, said = known_of(catalog.run("megascale-175b-12288"))
    assert stage["zero_stage"] == 1
    assert catalog.run("megascale-175b-12288").zero_stage == 2
    assert "zero_stage" not in said


def test_every_assumption_is_used_and_has_a_source() -> None:
    for entry in assumptions():
        assert any(entry.holds(run) for run in catalog.RUNS.values()) or entry.accelerators
        assert entry.source
        assert not set(entry.values) & set(SIZES)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('nic = "ib-hdr"', 'nic = "ib-hrd"', "[network-hdr] nic: unknown link 'ib-hrd'"),
        ('nic = "ib-hdr"', 'nick = "ib-hdr"', "[network-hdr] nick: unknown key (did you mean nic"),
        ('nic = "ib-hdr"\n', "", "[network-hdr]: assumes nothing"),
        ('runs = ["bloom"]', 'runs = ["blom"]', "[bloom] runs: no such run"),
        ('runs = ["bloom"]', 'runs = "bloom"', "[bloom] runs: not a list of names"),
        ('runs = ["bloom"]', 'runs = [""]', "[bloom] runs: not a list of names"),
        ('runs = ["bloom"]', "runs = [3]", "[bloom] runs: not a list of names"),
        ('source = "bloom"', 'source = "blom"', "[bloom] source: unknown source"),
        ("zero_stage = 0", "zero_stage = 4", "[before-2022] zero_stage: zero_stage: expected"),
        ('known = "published"\n', "", "[deepseek-v3-report]"),
        ('known = "published"', 'known = "maybe"', "[deepseek-v3-report] known: unknown"),
    ],
)
def test_a_fault_in_the_data_is_named(before: str, after: str, message: str) -> None:
    broken = content(FILE).replace(before, after, 1)
    assert broken != content(FILE)
    with pytest.raises(InputError) as refused:
        read_assumptions(broken)
    assert re.sub(r":\d+: ", ": ", str(refused.value), count=1).startswith(f"{FILE}: {message}")


def test_the_release_of_a_published_run_is_the_one_of_its_table() -> None:
    named = [run for run in catalog.RUNS.values() if run.name.startswith("mbridge-")]
    assert len(named) > 20
    for run in named:
        year, month = run.name.split("-")[1].split(".")[:2]
        assert software_of(run).startswith(f"megatron-bridge {year}.{month}")

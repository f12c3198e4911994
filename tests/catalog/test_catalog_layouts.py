"""The models accept every preset and every published run whose layout is known."""

from __future__ import annotations

import pytest

import figgen.catalog as catalog
from figgen.catalog import HardwarePreset, MapPreset, Run, TrainingPreset
from figgen.models.machine.layout import layout

RUNS = [
    run for run in catalog.RUNS.values() if None not in (run.gpus, run.tp, run.cp, run.pp, run.dp)
]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_run_lays_out_on_both_meshes(run: Run) -> None:
    assert run.gpus is not None
    etp = 1 if run.ep > 1 else None
    parallel = layout(
        nodes=1,
        gpus_per_node=run.gpus,
        tp=run.tp,
        cp=run.cp,
        pp=run.pp,
        ep=run.ep,
        etp=etp,
        dp=run.dp,
    )
    assert parallel.dp == run.dp
    assert parallel.expert.world_size == run.gpus


@pytest.mark.parametrize("preset", catalog.PRESETS.values(), ids=lambda preset: preset.name)
def test_a_preset_is_valid(preset: catalog.Preset) -> None:
    match preset:
        case MapPreset():
            names = ("nodes", "gpus_per_node", "tp", "cp", "pp", "dp", "ep", "etp")
            parallel = layout(**{name: getattr(preset, name) for name in names})
            assert (parallel.dp, parallel.edp) == (preset.dp, preset.edp)
        case TrainingPreset():
            assert preset.run in RUNS
        case HardwarePreset():
            assert preset.gpus_per_node % preset.nics_per_node == 0
            assert preset.scale_up is preset.accelerator.scale_up
            assert preset.network_bandwidth_bytes_per_s < preset.scale_up_bandwidth_bytes_per_s

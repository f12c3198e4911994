"""Work per byte compared with frozen points of the formula catalog and with closed forms."""

import pytest

from figgen.catalog import model
from figgen.errors import InputError
from figgen.formulas.compute_and_roofline import fsdp_ccr
from figgen.formulas.hierarchical_collectives import flat_ring_bytes_per_nic
from figgen.models.algorithms.communication_ratio import (
    group_bandwidth_bytes_per_s,
    layer_training_flops_per_token,
    mixed_fsdp_ccr,
    pipeline_boundary_ccr,
    tensor_parallel_ccr,
)
from figgen.models.shape.transformer import flops_per_token

GPT3 = model("gpt-3-175b").shape
DENSE = ("gpt-3-175b", "llama-3-8b", "llama-3-70b", "llama-3-405b")


def test_gpt3_layer_has_three_times_the_catalogues_forward_flops() -> None:
    # layer_fwd_flops at b=1, s=2048, h=12288
    per_token = layer_training_flops_per_token(GPT3, sequence=2048)
    assert per_token * 2048 == pytest.approx(3 * 7.62786192e12, rel=1e-8)


@pytest.mark.parametrize("name", DENSE)
def test_layers_and_output_projection_make_the_whole_models_flops(name: str) -> None:
    shape = model(name).shape
    head = 6 * shape.vocab * shape.hidden
    assert shape.layers * layer_training_flops_per_token(shape) + head == flops_per_token(shape)


def test_gpt3_tp8_ratio_is_the_catalogues_flops_over_its_bytes() -> None:
    # tp_layer_bytes at 1, 2048, 12288, 8 is 352,321,536 B
    expected = 3 * 7.62786192e12 / 8 / 352_321_536
    assert tensor_parallel_ccr(GPT3, tp=8, sequence=2048) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("tp", [2, 3, 4, 8, 16])
def test_tp_ratio_follows_hidden_over_tp_minus_one(tp: int) -> None:
    h, s = 12288, 2048
    closed = 9 * h * (1 + s / (6 * h)) / ((tp - 1) * 2)
    assert tensor_parallel_ccr(GPT3, tp=tp, sequence=s) == pytest.approx(closed, rel=1e-12)


def test_full_recomputation_of_activations_adds_half_the_all_reduces() -> None:
    plain = tensor_parallel_ccr(GPT3, tp=8)
    assert tensor_parallel_ccr(GPT3, tp=8, all_reduces=6) == pytest.approx(plain / 1.5)


def test_pipeline_ratio_of_one_gpt3_layer_is_its_flops_over_two_messages() -> None:
    # pp_boundary_bytes at 1, 2048, 12288 is 50,331,648 B; one forward, one backward
    expected = 12 * 3 * 7.62786192e12 / (2 * 50_331_648)
    found = pipeline_boundary_ccr(GPT3, stage_layers=12, sequence=2048)
    assert found == pytest.approx(expected, rel=1e-8)


def test_equal_precisions_give_plain_fsdp_and_fp8_gathers_save_a_third() -> None:
    plain = mixed_fsdp_ccr(8192, gather_bytes_per_param=2, reduce_bytes_per_param=2, dp=8)
    # ccr_fsdp at 8192, 2, 8
    assert plain == pytest.approx(9362.28571, rel=1e-8)
    assert plain == fsdp_ccr(8192, 2, 8)
    fp8 = mixed_fsdp_ccr(8192, gather_bytes_per_param=1, reduce_bytes_per_param=2, dp=8)
    assert fp8 == pytest.approx(1.5 * plain)


@pytest.mark.parametrize("members", [1, 2, 4, 8])
def test_lent_ports_send_a_ring_as_fast_as_the_bytes_per_nic_allow(members: int) -> None:
    nic, nodes, buffer = 50e9, 16, 1e9
    ranks = nodes * members
    seconds = flat_ring_bytes_per_nic(ranks, members, buffer) / nic
    sent = 2 * (ranks - 1) / ranks * buffer
    assert sent / seconds == pytest.approx(group_bandwidth_bytes_per_s(1e12, nic, members))


def test_group_is_never_faster_than_its_scale_up_link() -> None:
    assert group_bandwidth_bytes_per_s(300e9, 50e9, 8) == 300e9
    assert group_bandwidth_bytes_per_s(450e9, 50e9, 8) == 400e9


def test_ratios_without_a_peer_are_refused() -> None:
    with pytest.raises(InputError, match="tp"):
        tensor_parallel_ccr(GPT3, tp=1)
    with pytest.raises(InputError, match="dp"):
        mixed_fsdp_ccr(1, gather_bytes_per_param=2, reduce_bytes_per_param=2, dp=1)
    with pytest.raises(InputError, match="stage_layers"):
        pipeline_boundary_ccr(GPT3, stage_layers=0)
    with pytest.raises(InputError, match="members_per_node"):
        group_bandwidth_bytes_per_s(1, 1, 0)
    with pytest.raises(InputError, match="dense"):
        layer_training_flops_per_token(model("mixtral-8x7b").shape)

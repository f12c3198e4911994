"""Kinds of kernels, by their names in public traces."""

from __future__ import annotations

import pytest

from figgen.models.profiles.kernel_kinds import (
    BOUNDS,
    LONGEST_NAME,
    kind_of_kernel,
    kind_of_operator,
    short_name,
)

# Names that profilers wrote on H100, A100, MI300 and in serving; cut where templates begin.
NAMES = {
    "product": (
        "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT",
        "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1",
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_nn>",
        "void cutlass::device_kernel<at::cuda::detail::enable_3x_kernel_for_sm9x<cutlass::gemm>>",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT16x16x1024_MI16x16x1_SN",
        "void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, float, 128, 16>",
        "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>",
        "triton_tem_fused_addmm_5",
        "triton_mm",
        "void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 4096u, 7168u>",
        "fused_moe_kernel",
        "void marlin_moe_wna16::Marlin<1125899906909960l>",
        "convolution fusion fusion.123",
    ),
    "attention": (
        "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x64",
        "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>",
        "void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64>>",
        "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::X>>>",
        "fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::AttentionKernel<x>)",
        "void cudnn::fusion::compute_dot_do_o_specialized<true, 64>(void const*)",
        "triton_tem_fused_flex_attention_0",
        "_ZN7ck_tile6kentryIJN7ck_tile13FmhaFwdKernelINS_30BlockFmhaPipelineQRKSVSAsyncE",
        "void flashinfer::BatchDecodeWithPagedKVCacheKernel<x>",
        "kernel_unified_attention_2d",
        "attn_fwd",
    ),
    "communication": (
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)",
        "ncclSymkDevKernel_AllGather_LL(ncclSymkDevWorkArgs)",
        "void rcclGenericKernel<1, false>(ncclDevKernelArgsStorage<4096ul>)",
        "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(x)",
        "void <unnamed>::multimem_one_shot_all_reduce_kernel<c10::BFloat16>",
        "void (anonymous namespace)::two_shot_all_reduce_kernel<c10::BFloat16, 16, 8>",
        "void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>",
        "void sglang::cross_device_reduce_1stage<__half, 8>(sglang::RankData*)",
        "void aiter::cross_device_reduce_2stage_write_mode<__hip_bfloat16, 8>",
        "void quickreduce::allreduce_prototype_twoshot<x>",
        "void deep_ep::intranode::dispatch<8, 768, 8192>",
        "void deep_ep::internode_ll::combine<true, 7168>",
        "userbuffers_fp16_sum_inplace_gpu_rr_rs_oop",
        "kuserbuffers_pushrecv",
        "nvshmemi_transfer_kernel",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<x>",
        "void mscclpp::allreduce7<x>",
        "void pplx::a2a_dispatch_send_kernel<x>",
        "all-reduce.1",
        "all-gather-start.3",
        "oneccl_allreduce_kernel",
    ),
    "optimizer": (
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::"
        "(anonymous namespace)::FusedOptimizerTensorListMetadata<4>>",
        "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>",
        "triton_for_fused_addcdiv_lerp_0",
        "void at::native::lpnorm_cleanup<float, (at::native::NormType)1, float>",
    ),
    "fused": (
        "triton_poi_fused__to_copy_add_mul_3",
        "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_4",
        "triton_per_fused_all_gather_into_tensor_wait_tensor_7",
        "loop_add_fusion_12",
    ),
    "elementwise": (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
        "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<softmax>>",
        "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>",
        "_swiglu_fwd_kernel",
        "void vllm::rotary_embedding_kernel<c10::BFloat16, true>",
        "void vllm::act_and_mul_kernel<c10::BFloat16>",
        "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float>",
    ),
    "normalization": (
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>",
        "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<x>",
        "void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel<x>",
        "_rms_norm_forward_kernel",
        "void ln_fwd_kernel<x>",
    ),
    "softmax": (
        "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float>",
        "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false, true>",
        "liger_cross_entropy_kernel",
        "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float>",
    ),
    "reduction": (
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps>>",
    ),
    "copy": (
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy_alignedK_contig<x>",
        "void at::native::(anonymous namespace)::split_with_sizes_copy_out_contiguous_kernel(x)",
        "__amd_rocclr_copyBuffer.kd",
        "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, x>",
    ),
    "memset": ("__amd_rocclr_fillBufferAligned.kd",),
    "indexing": (
        "void at::native::(anonymous namespace)::compute_grad_weight<float, long>",
        "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<x>>",
        "void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<x>",
        "void at::native::sbtopk::gatherTopK<float, unsigned int, 1, false>",
        "void permute_kernel<__nv_bfloat16>",
        "void vllm::moe::moe_align_block_size_kernel<int>",
    ),
    "quantization": (
        "void transformer_engine::(anonymous namespace)::cast_transpose_fused_kernel<x>",
        "void vllm::scaled_fp8_quant_kernel<c10::BFloat16>",
    ),
    "convolution": (
        "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nchw_tilesize128",
        "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>",
    ),
    "recurrence": (
        "void selective_scan_fwd_kernel<x>", "_chunk_scan_fwd_kernel", "chunk_gated_delta_rule_fwd",
    ),
    "other": ("main_kernel",),
}  # fmt: skip


@pytest.mark.parametrize("kind", NAMES)
def test_kernels_are_known_by_their_names(kind: str) -> None:
    assert {name: kind_of_kernel(name) for name in NAMES[kind]} == dict.fromkeys(NAMES[kind], kind)


def test_every_kind_has_what_bounds_it() -> None:
    assert set(NAMES) == set(BOUNDS)
    assert BOUNDS["product"] == "compute"
    assert BOUNDS["elementwise"] == "memory"


@pytest.mark.parametrize(
    ("operator", "kind"),
    [
        ("aten::mm", "product"),
        ("aten::_scaled_mm", "product"),
        ("aten::_flash_attention_forward", "attention"),
        ("aten::native_layer_norm", "normalization"),
        ("aten::sum", "reduction"),
        ("aten::cat", "copy"),
        ("aten::add_", "elementwise"),
        ("aten::_foreach_lerp_", "optimizer"),
        ("aten::embedding", "indexing"),
        ("mylib::thing", "other"),
    ],
)
def test_an_operator_tells_where_its_kernels_name_does_not(operator: str, kind: str) -> None:
    assert kind_of_operator(operator) == kind


def test_a_name_is_cut_to_be_read_in_a_row() -> None:
    name = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(x)"
    assert short_name(name) == "vectorized_layer_norm_kernel<float, float>(x)"
    assert len(short_name("x" * 200)) == LONGEST_NAME

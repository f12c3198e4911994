"""The notation of the whole guide: every argument of every formula, once.

One name always has one symbol, one unit and one meaning; the appendix "Notation" prints this
table. Letters follow the field where it agrees: N parameters, L layers, M microbatches, S the
largest per-rank buffer of a collective, B bandwidth per direction, T, C, D, P the sizes of the
axes. `range` is the condition that holds wherever the argument is used; `whole` arguments are
counted and must be integers.
"""

from __future__ import annotations

from dataclasses import dataclass

POSITIVE = "{} > 0"
NOT_NEGATIVE = "{} >= 0"
AT_LEAST_ONE = "{} >= 1"
SHARE = "0 < {} <= 1"


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of formulas: `symbol` is LaTeX, `unit` SI, `range` a condition on `{}`."""

    name: str
    symbol: str
    unit: str
    meaning: str
    range: str = NOT_NEGATIVE
    whole: bool = False


def _count(name: str, symbol: str, unit: str, meaning: str) -> Argument:
    return Argument(name, symbol, unit, meaning, AT_LEAST_ONE, whole=True)


def _index(name: str, symbol: str, meaning: str) -> Argument:
    return Argument(name, symbol, "1", f"{meaning}, counted from 0", NOT_NEGATIVE, whole=True)


def _positive(name: str, symbol: str, unit: str, meaning: str) -> Argument:
    return Argument(name, symbol, unit, meaning, POSITIVE)


def _amount(name: str, symbol: str, unit: str, meaning: str) -> Argument:
    return Argument(name, symbol, unit, meaning)


_ARGUMENTS = (
    # Ranks and the axes of parallelism.
    _count("ranks", "n", "rank", "ranks of the collective"),
    _count("world_size", "W", "rank", "ranks of the whole job"),
    _count("tp", "T", "rank", "tensor-parallel size"),
    _count("cp", "C", "rank", "context-parallel size"),
    _count("dp", "D", "rank", "data-parallel size"),
    _count("pp", "P", "stage", "pipeline-parallel size"),
    _count("ep", "E_p", "rank", "expert-parallel size"),
    _count("etp", "T_e", "rank", "tensor-parallel size inside experts"),
    _count("edp", "D_e", "rank", "data-parallel size of experts"),
    _index("rank", "r", "global rank"),
    _index("tp_index", r"\text{tp}", "tensor-parallel index"),
    _index("cp_index", r"\text{cp}", "context-parallel index"),
    _index("dp_index", r"\text{dp}", "data-parallel index"),
    _index("pp_index", r"\text{pp}", "pipeline-parallel index"),
    _index("ep_index", r"\text{ep}", "expert-parallel index"),
    _index("etp_index", r"\text{etp}", "tensor-parallel index inside experts"),
    _index("edp_index", r"\text{edp}", "data-parallel index of experts"),
    _count("group_size", "g", "rank", "ranks of one group of an axis"),
    _count("gpus", "G", "GPU", "GPUs that work on the job"),
    _count("gpus_per_node", "g", "GPU", "GPUs of one node"),
    Argument("free_gpus", r"g_\text{free}", "GPU", "most free GPUs of any node", whole=True),
    _count("nodes", r"n_\text{node}", "node", "nodes"),
    _count("nics_per_node", r"g_\text{nic}", "port", "network ports of one node"),
    _count("replicas", "R", "replica", "replicas of the sharded model"),
    # Collectives.
    _amount("message_bytes", "S", "B", "largest per-rank buffer of the collective"),
    _amount("latency_s", r"\alpha", "s", "latency of one step of the algorithm"),
    _positive("bandwidth_bytes_per_s", "B", "B/s", "bandwidth per direction and endpoint"),
    _amount("intra_latency_s", r"\alpha_\text{i}", "s", "latency of a step within the node"),
    _amount("inter_latency_s", r"\alpha_\text{e}", "s", "latency of a step between nodes"),
    _positive("intra_bandwidth_bytes_per_s", r"B_\text{i}", "B/s", "bandwidth within the node"),
    _positive("inter_bandwidth_bytes_per_s", r"B_\text{e}", "B/s", "bandwidth between nodes"),
    Argument("steps", "k", "step", "steps of the algorithm", NOT_NEGATIVE, whole=True),
    _index("step", "i", "step of the algorithm"),
    Argument("offset", "o", "1", "shift of the schedule; −1 as in NCCL", "", whole=True),
    _amount("sent_bytes", "m", "B", "bytes that a rank sends"),
    _amount("reduced_bytes", "c", "B", "bytes that a rank reduces"),
    _amount("seconds_per_byte", r"\beta", "s/B", "time to send a byte"),
    _amount("reduce_seconds_per_byte", r"\gamma", "s/B", "time to reduce a byte"),
    _positive("slope_s_per_byte", r"\text{slope}", "s/B", "measured slope of time over S"),
    _count("segments", r"k_\text{seg}", "segment", "segments that the message is cut into"),
    _positive("time_s", "t", "s", "measured time"),
    _amount("base_latency_s", r"t_\text{base}", "s", "latency that is paid once"),
    _positive("bus_bandwidth_bytes_per_s", r"B_\text{bus}", "B/s", "bus bandwidth of nccl-tests"),
    _positive("two_way_bandwidth_bytes_per_s", r"B_\text{both}", "B/s",
              "bandwidth of both directions together, as some data sheets print it"),
    _positive("sparse_peak_flops_per_s", r"F_\text{sparse}", "FLOP/s",
              "peak that counts the zeros of 2:4 sparsity as work"),
    # Buses and fabrics.
    _count("lanes", "w", "1", "lanes of a link"),
    _positive("transfers_per_s", r"f_\text{lane}", "element/s", "bits of a lane per second"),
    Argument("coding_share", r"c_\text{line}", "1", "share of the bits that is payload", SHARE),
    _count("switch_ports", r"k_\text{sw}", "port", "ports of a switch"),
    Argument("tiers", r"\ell", "1", "tiers of switches", "1 <= {} <= 5", whole=True),
    _count("endpoints", r"n_\text{end}", "port", "endpoints of a fabric"),
    Argument("oversubscription", r"r_\text{over}", "1", "bandwidth towards endpoints over that "
             "towards the rest", "{} >= 1"),
    _count("router_endpoints", r"p_\text{r}", "port", "endpoints of one router"),
    _count("group_routers", r"a_\text{r}", "1", "routers of one group"),
    _count("global_ports", r"h_\text{r}", "port", "ports of a router that lead to other groups"),
    _count("side", r"k_\text{side}", "port", "endpoints around one ring of a torus"),
    Argument("dimensions", r"d_\text{dim}", "1", "dimensions", "1 <= {} <= 6", whole=True),
    _positive("bisection_links", r"L_\text{cut}", "link", "links that join two halves"),
    Argument("kept_share", r"q_\text{keep}", "1", "share of the time that computes", "0 < {} < 1"),
    # Model shape and data.
    _positive("parameters", "N", "param", "parameters"),
    _positive("active_parameters", r"N_\text{act}", "param", "parameters that one token uses"),
    _positive("layer_parameters", "W_i", "param", "parameters of one layer"),
    _count("layers", "L", "layer", "transformer layers"),
    _count("hidden", "h", "1", "hidden width"),
    _count("ffn_width", "f", "1", "width inside the feed-forward block"),
    _count("kv_width", r"h_\text{kv}", "1", "width of keys (and of values): KV heads × head size"),
    _count("width", "d", "1", "dimension that is split"),
    _count("heads", "a", "head", "attention (query) heads"),
    _count("kv_heads", r"a_\text{kv}", "head", "heads of keys and values"),
    _count("vocabulary", r"V_\text{voc}", "token", "vocabulary size"),
    _count("sequence_length", "s", "token", "tokens of one sequence"),
    _count("microbatch_size", "b", "sequence", "sequences of one microbatch"),
    _positive("tokens", r"\tau", "token", "tokens"),
    _count("experts", "E", "expert", "experts of a layer"),
    _count("top_k", "k", "expert", "experts that a token is sent to"),
    _count("passes", r"n_\text{pass}", "1", "all-to-alls: 1 dispatch, 2 forward, 4 with backward"),
    # Bytes of things.
    _positive("bytes_per_element", r"b_\text{e}", "B", "bytes of one element"),
    _positive("bytes_per_param", r"b_\text{p}", "B/param", "bytes kept for one parameter"),
    _amount("weight_bytes_per_param", r"b_\text{w}", "B/param", "weight bytes per parameter"),
    _amount("gradient_bytes_per_param", r"b_\text{g}", "B/param", "gradient bytes per parameter"),
    _amount("optimizer_bytes_per_param", r"b_\text{o}", "B/param", "optimizer bytes per parameter"),
    _positive("memory_bytes", "H", "B", "memory of one GPU"),
    Argument("usable_fraction", r"\phi", "1", "share of the memory that is usable", SHARE),
    Argument("zero_stage", "z", "1", "ZeRO stage: 0 none, 1 optimizer, 2 gradients, 3 weights",
             "0 <= {} <= 3", whole=True),
    _amount("layer_activation_bytes", "A", "B", "activation bytes of one layer and microbatch"),
    _positive("in_flight", "F_p", "microbatch", "microbatches whose activations the stage holds"),
    # Pipelines.
    _count("stages", "P", "stage", "pipeline stages"),
    _index("stage", "p", "pipeline stage"),
    _count("microbatches", "M", "microbatch", "microbatches of one step, per replica"),
    _count("chunks", "V", "chunk", "model chunks (virtual stages) on each GPU"),
    _index("chunk", "v", "chunk of a GPU"),
    _count("group_microbatches", "G", "microbatch", "microbatches in a row of one chunk"),
    _positive("forward_s", r"t_\text{f}", "s", "forward time of one microbatch on one stage"),
    _positive("backward_s", r"t_\text{b}", "s", "backward time of one microbatch on one stage"),
    _amount("exposed_s", r"T_\text{exp}", "s", "communication time that nothing hides"),
    Argument("efficiency", r"\eta", "1", "share of the time that is useful", "0 < {} < 1"),
    # Overlap and compression.
    _positive("communication_s", r"T_\text{c}", "s", "communication time, not overlapped"),
    _positive("compute_s", r"T_\text{b}", "s", "time of the computation that may hide it"),
    _count("buckets", r"n_\text{b}", "bucket", "buckets that the gradient is cut into"),
    _amount("bucket_overhead_s", r"\tau_\text{o}", "s", "fixed cost of launching one bucket"),
    _positive("gradient_bytes", "S", "B", "gradient bytes of the model"),
    _positive("bucket_bytes", r"S_\text{b}", "B", "capacity of a bucket"),
    _positive("first_bucket_bytes", "S_1", "B", "capacity of the first bucket"),
    _positive("speedup", "S_n", "1", "speed on n ranks over that on one"),
    _positive("bits_from", r"q_\text{from}", "1", "bits of an element before"),
    _positive("bits_to", r"q_\text{to}", "1", "bits of an element after"),
    Argument(
        "overlapped_fraction", r"f_\text{o}", "1", "share of the work that hides messages",
        "0 <= {} <= 1",
    ),
    Argument("kept_fraction", "f", "1", "share of the elements that is sent", SHARE),
    _positive("value_bytes", r"b_\text{v}", "B", "bytes of a sent value"),
    _amount("index_bytes", r"b_\text{i}", "B", "bytes of a sent index"),
    _count("rows", "m", "1", "rows of the gradient matrix"),
    _count("columns", r"n_\text{col}", "1", "columns of the gradient matrix"),
    _count("low_rank", "r", "1", "rank of the approximation"),
    _count("accumulation_steps", "M", "microbatch", "microbatches whose gradients are summed"),
    _count("shard_ranks", "g", "rank", "ranks that share one copy of the model"),
    _amount("gather_s", r"t_\text{g}", "s", "time to gather the weights of one layer"),
    _positive("layer_compute_s", r"t_\text{c}", "s", "compute time of one layer"),
    # Rates, roofline, cost.
    _positive("peak_flops_per_s", "F", "FLOP/s", "dense peak of the endpoint"),
    _positive("narrow_flops_per_s", r"F_\text{n}", "FLOP/s", "dense peak of narrow products"),
    _positive("reads", r"n_\text{r}", "1", "times that an element is read to be cast"),
    _positive("scale_bits", r"\beta_\text{s}", "1", "bits of a scale"),
    _positive("elements_per_scale", r"n_\text{s}", "1", "elements that share a scale"),
    _positive("cast_bytes", r"b_\text{c}", "B", "bytes moved to cast one element"),
    _positive("memory_bandwidth_bytes_per_s", r"B_\text{mem}", "B/s", "memory bandwidth"),
    _positive("intensity", r"\text{AI}", "FLOP/B", "arithmetic intensity: work per byte of memory"),
    _positive("ccr", r"\text{CCR}", "FLOP/B", "computation per byte sent"),
    _positive("ridge", r"\text{CCR}^*", "FLOP/B", "ridge point of the endpoint"),
    _positive("flops_per_sample", "f", "FLOP/sample", "work of one sample"),
    _positive("step_bytes", "V", "B/step", "bytes that the endpoint sends in a step"),
    _positive("samples_per_step", r"b_\text{s}", "sample/step", "samples of a step"),
    _positive("tokens_per_gpu_s", r"R_\tau", "token/s/GPU", "tokens per second and GPU"),
    _positive("gpu_hours", r"t_\text{GPU}", "GPU-h", "GPU-hours of the run"),
    _positive("price_per_gpu_hour", "p", "USD/GPU-h", "price of a GPU-hour"),
    _positive("elapsed_months", r"\Delta t", "month", "time between the two models"),
    Argument("growth", "g", "1", "size of the later model over the earlier one", "{} > 1"),
    _positive("loss_ratio", r"\lambda", "1", "loss before over loss after"),
    # Serving, price and energy.
    Argument("windowed_layers", r"L_\text{win}", "layer", "layers that see a window", whole=True),
    _count("window", r"s_\text{win}", "token", "tokens of a sliding window"),
    _count("context", r"s_\text{ctx}", "token", "tokens of a prompt, or before the next one"),
    _count("latent_width", r"d_\text{c}", "1", "width of the vector that keys and values share"),
    _count("query_width", r"d_\text{q}", "1", "width of the compressed query"),
    _count("head_width", r"d_\text{h}", "1", "width of a head without its rotated part"),
    _count("rotary_width", r"d_\text{R}", "1", "width of the rotated part of a key"),
    _count("value_width", r"d_\text{v}", "1", "width of a value head"),
    _count("multiple", r"m_\text{of}", "1", "number of which a width is a multiple"),
    _count("vectors", r"n_\text{vec}", "1", "vectors that one norm learns"),
    _amount("held_bytes", r"S_\text{w}", "B", "weights as they are served"),
    _positive("cache_bytes", r"S_\text{kv}", "B", "cache of one sequence"),
    _count("sequences", r"n_\text{seq}", "sequence", "sequences that are decoded together"),
    _positive("gpu_power_w", r"P_\text{GPU}", "W", "power of a GPU with its share of the node"),
    Argument("power_overhead", r"\text{PUE}", "1", "power at the plug over that of the machines",
             "{} >= 1"),
    _count("inner_width", r"d_\text{in}", "1", "width of a state-space mixer, all heads"),
    _count("state_width", r"d_\text{st}", "1", "numbers of a channel's state"),
    _count("state_groups", r"n_\text{grp}", "1", "groups of heads that share their maps"),
    _count("mixer_heads", r"a_\text{ssm}", "1", "heads of a state-space mixer"),
    _count("convolution", r"k_\text{conv}", "token", "tokens under the convolution"),
    _count("chunk_tokens", r"\tau_\text{ch}", "token", "tokens of a chunk of the scan"),
    _count("layer_parameters", r"N_\text{layer}", "param", "parameters of one layer"),
    # Fine-tuning.
    _positive("trained_parameters", r"N_\text{tr}", "param", "parameters that are trained"),
    _positive("value_bits", r"q_\text{v}", "1", "bits of a value"),
    _positive("scale_bits", r"q_\text{s}", "1", "bits of the scale of a block"),
    _positive("outer_scale_bits", r"q_\text{S}", "1", "bits of the scale of a block of scales"),
    _count("block", r"n_\text{blk}", "1", "values that share a scale"),
    _count("outer_block", r"n_\text{Blk}", "1", "scales that share a scale"),
    _count("iterations", r"n_\text{it}", "1", "iterations of Newton and Schulz"),
    _positive("batch_tokens", r"\tau_\text{b}", "token", "tokens of one step"),
    # Failures and goodput.
    _positive("gpu_mtbf_s", "T_1", "s", "mean time between failures that stop the job, per GPU"),
    _positive("mtbf_s", r"T_\text{f}", "s", "mean time between failures of the job"),
    _positive("interval_s", r"T_\text{i}", "s", "time of training between two checkpoints"),
    _positive("stall_s", r"\delta", "s", "time for which a checkpoint stops training"),
    _amount("lag_s", r"T_\text{lag}", "s",
            "time from the end of the stall until the checkpoint is safe"),
    _amount("restart_s", r"T_\text{r}", "s", "time from a failure until training goes on"),
    _positive("checkpoint_bytes", r"S_\text{c}", "B", "bytes of a checkpoint"),
    _positive("storage_bandwidth_bytes_per_s", r"B_\text{st}", "B/s",
              "bandwidth of the storage for all who write"),
    _positive("repair_s", r"T_\text{rep}", "s", "time until a failed node is back"),
    _positive("all_reduces", r"n_\text{AR}", "1", "all-reduces of one layer"),
)  # fmt: skip

NOTATION: dict[str, Argument] = {argument.name: argument for argument in _ARGUMENTS}

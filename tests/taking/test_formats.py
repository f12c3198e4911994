"""Each framework's scripts and configuration files are read as the framework reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from figgen.scenarios.taking.job import read_job
from figgen.scenarios.taking.options import own_names
from tests.taking.jobs import CASES, take


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"])
def test_files_of_people_are_taken_as_they_are_written(case: dict[str, Any]) -> None:
    job = take(case["text"])
    assert {name: job.taken.get(name) for name in case["taken"]} == case["taken"]
    assumed = case.get("assumed", {})
    assert {name: job.assumed.get(name) for name in assumed} == assumed
    assert set(case.get("may_matter", ())) <= set(job.unsure)
    assert set(case.get("asked", ())) <= set(job.asked)
    assert set(case.get("notes", ())) <= set(job.notes)


INLINE: dict[str, tuple[str, dict[str, object]]] = {
    "array": (
        "GPUS=8\nARGS=(\n  --tensor-model-parallel-size 4 # in a node\n"
        "  --micro-batch-size 2\n)\nARGS+=(--seq-length 8192)\n"
        'torchrun --nproc_per_node=$GPUS --nnodes=2 pretrain_gpt.py "${ARGS[@]}"',
        {"nodes": 2, "gpus_per_node": 8, "tp": 4, "microbatch_size": 2, "sequence": 8192},
    ),
    "sum": (
        "NODES=4\nPER=8\nWORLD=$((NODES*PER))\nTP=2\nPP=4\nGBS=$(( WORLD / (TP * PP) * 16 ))\n"
        "torchrun --nnodes $NODES --nproc-per-node $PER x.py --tensor-model-parallel-size $TP "
        "--pipeline-model-parallel-size $PP --global-batch-size $GBS --micro-batch-size 1",
        {"nodes": 4, "gpus_per_node": 8, "tp": 2, "pp": 4, "global_batch": 64},
    ),
    "expr": (
        "A=4\nB=`expr $A \\* 2`\ntorchrun --nnodes 1 --nproc_per_node $B x.py "
        "--tensor-model-parallel-size $A",
        {"nodes": 1, "gpus_per_node": 8, "tp": 4},
    ),
    "slurm variables": (
        "#!/bin/bash\n#SBATCH -N 16\n#SBATCH --gres=gpu:h100:8\n"
        "srun torchrun --nnodes $SLURM_NNODES --nproc-per-node $SLURM_GPUS_ON_NODE "
        "--rdzv_endpoint $head:29500 train.py --tensor-model-parallel-size 8",
        {"nodes": 16, "gpus_per_node": 8, "tp": 8, "accelerator": "h100-sxm-80gb"},
    ),
    "gpus of slurm": (
        "#SBATCH --nodes=2\n#SBATCH --gpus=16\nsrun python x.py --pipeline-model-parallel-size 2",
        {"nodes": 2, "gpus_per_node": 8, "pp": 2},
    ),
    "processes beat gpus": (
        "#SBATCH --nodes=2\n#SBATCH --gpus-per-node=8\n"
        "srun torchrun --nnodes 2 --nproc-per-node 4 x.py --tensor-model-parallel-size 2",
        {"nodes": 2, "gpus_per_node": 4, "tp": 2},
    ),
    "shell in a shell": (
        'srun -N4 --ntasks-per-node=1 bash -c "torchrun --nnodes 4 --nproc_per_node 8 x.py '
        '--tensor-model-parallel-size 2"',
        {"nodes": 4, "gpus_per_node": 8, "tp": 2},
    ),
    "mpi": (
        "mpirun -np 32 -npernode 8 python pretrain_gpt.py --tensor-model-parallel-size 8",
        {"nodes": 4, "gpus_per_node": 8, "tp": 8},
    ),
    "old launcher": (
        "python -m torch.distributed.launch --nproc_per_node 8 --nnodes 2 pretrain_gpt.py "
        "--tensor-model-parallel-size 2 --recompute-granularity full --recompute-method block "
        "--recompute-num-layers 3 --micro-batch-size 1",
        {"nodes": 2, "gpus_per_node": 8, "tp": 2, "recompute": "block:3"},
    ),
    "here document": (
        "cat <<EOF > ds.json\n{\"train_micro_batch_size_per_gpu\": $MBS,\n"
        ' "zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}\nEOF\n'
        "deepspeed --num_gpus 8 --num_nodes 2 train.py --deepspeed ds.json",
        {"nodes": 2, "gpus_per_node": 8, "zero_stage": 2, "dtype": "bf16"},
    ),
    "virtual stages": (
        "torchrun --nnodes 8 --nproc-per-node 8 pretrain_gpt.py --num-layers 96 --hidden-size 12288"
        " --num-attention-heads 96 --pipeline-model-parallel-size 8 "
        "--num-layers-per-virtual-pipeline-stage 2 --micro-batch-size 1",
        {"pp": 8, "chunks": 6, "schedule": "interleaved-1f1b"},
    ),
    "first and last stage": (
        "torchrun --nnodes 4 --nproc-per-node 8 pretrain_gpt.py --num-layers 30 --hidden-size 1024 "
        "--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 7 "
        "--decoder-last-pipeline-num-layers 7",
        {"layers_per_stage": "7,8,8,7"},
    ),
    # The example of Megatron-Core's own parser: 29 stages of two layers, one of MTP, one of loss.
    "layout of stages": (
        "torchrun --nnodes 1 --nproc-per-node 8 pretrain_gpt.py --num-layers 61 --hidden-size 1024 "
        "--pipeline-model-parallel-size 8 --pipeline-model-parallel-layout 'Et*3|(tt|)*29,m|L' "
        "--mtp-num-layers 1",
        {
            "chunks": 4,
            "schedule": "interleaved-1f1b",
            "layers_per_stage": "3,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,0,0",
        },
    ),
    "modules": (
        "torchrun --nnodes 1 --nproc-per-node 8 pretrain_gpt.py --num-layers 4 "
        "--recompute-granularity selective --recompute-modules mlp moe_act layernorm",
        {"recompute": "mlp,moe_act,layernorm"},
    ),
    "other order": (
        "torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 2 "
        "--pipeline-model-parallel-size 2 --use-tp-pp-dp-mapping",
        {"order": "megatron-tp-pp-dp"},
    ),
    "bridge": (
        "torchrun --nproc-per-node 8 run.py model.tensor_model_parallel_size=2 "
        "model.context_parallel_size=2 train.global_batch_size=128 train.micro_batch_size=1 "
        "dataset.sequence_length=8192 ddp.overlap_grad_reduce=true model.sequence_parallel=true "
        "ddp.overlap_param_gather=false",
        {"tp": 2, "cp": 2, "global_batch": 128, "microbatch_size": 1, "sequence": 8192,
         "overlap_data_parallel": True, "overlap_weights": False, "sequence_parallel": True},
    ),
    "bridge's short options": (
        "python setup_experiment.py --model_family_name llama --model_recipe_name llama3_70b "
        "--gpu h100 -ng 64 -gn 8 -tp 4 -pp 8 -cp 2 -vp 5 -mb 1 -gb 128 --compute_dtype fp8_cs",
        {"nodes": 8, "gpus_per_node": 8, "tp": 4, "pp": 8, "cp": 2, "chunks": 5,
         "microbatch_size": 1, "global_batch": 128, "dtype": "fp8", "model": "llama-3-70b",
         "accelerator": "h100-sxm-80gb"},
    ),
    "nemo's yaml": (
        "trainer:\n  devices: 8\n  num_nodes: 16\n  precision: bf16\nmodel:\n"
        "  micro_batch_size: 1\n  global_batch_size: 2048\n  tensor_model_parallel_size: 8\n"
        "  pipeline_model_parallel_size: 4\n  virtual_pipeline_model_parallel_size: null\n"
        "  encoder_seq_length: 4096\n  max_position_embeddings: ${.encoder_seq_length}\n"
        "  num_layers: 80\n  hidden_size: 8192\n  num_attention_heads: 64\n"
        "  num_query_groups: 8\n  ffn_hidden_size: 28672 # wide\n  activation: fast-swiglu\n"
        "  activations_checkpoint_granularity: selective\n  sequence_parallel: True\n"
        "  optim:\n    name: distributed_fused_adam\n",
        {"nodes": 16, "gpus_per_node": 8, "tp": 8, "pp": 4, "layers": 80, "kv_heads": 8,
         "global_batch": 2048, "sequence": 4096, "recompute": "selective", "zero_stage": 1,
         "sequence_parallel": True, "dtype": "bf16", "model": "llama-2-70b"},
    ),
    "megatron's yaml": (
        "language_model:\n  num_layers: 24\n  hidden_size: 1024\n  num_attention_heads: 16\n"
        "model_parallel:\n  tensor_model_parallel_size: 2\n  pipeline_model_parallel_size: 2\n"
        "  bf16: True\nmicro_batch_size: 2\nglobal_batch_size: 128\nseq_length: 4096\n",
        {"layers": 24, "hidden": 1024, "tp": 2, "pp": 2, "microbatch_size": 2, "dtype": "bf16",
         "global_batch": 128, "sequence": 4096},
    ),
    "torchtitan's file": (
        '[model]\nname = "llama3"\nflavor = "70B"\n[training]\nlocal_batch_size = 8\n'
        "seq_len = 8192\n[parallelism]\ndata_parallel_replicate_degree = 1\n"
        "data_parallel_shard_degree = -1\ntensor_parallel_degree = 8  # a node\n"
        '[activation_checkpoint]\nmode = "full"\n[quantize.linear.float8]\nx = 1\n',
        {"model": "llama-3-70b", "microbatch_size": 8, "sequence": 8192, "tp": 8,
         "microbatches": 1, "recompute": "full", "order": "torchtitan"},
    ),
    "torchtitan's pipeline": (
        "NGPU=8 CONFIG_FILE=./torchtitan/models/llama3/train_configs/llama3_8b.toml ./run_train.sh "
        "--training.local_batch_size 4 --parallelism.pipeline_parallel_degree 2 "
        "--parallelism.pipeline_parallel_schedule Interleaved1F1B --training.seq_len=4096",
        {"model": "llama-3-8b", "gpus_per_node": 8, "pp": 2, "schedule": "interleaved-1f1b",
         "microbatch_size": 1, "microbatches": 4, "sequence": 4096},
    ),
    "gpt-neox": (
        '{\n  "pipe-parallel-size": 4,\n  "model-parallel-size": 2,\n  "num-layers": 44,\n'
        '  "hidden-size": 6144,\n  "num-attention-heads": 64,\n  "seq-length": 2048,\n'
        '  "train_micro_batch_size_per_gpu": 4, # of a GPU\n'
        '  "gradient_accumulation_steps": 32,\n  "zero_optimization": {"stage": 1},\n'
        '  "checkpoint-activations": true,\n  "fp16": {"enabled": true},\n}',
        {"pp": 4, "tp": 2, "layers": 44, "hidden": 6144, "sequence": 2048, "microbatch_size": 4,
         "microbatches": 32, "zero_stage": 1, "recompute": "full", "dtype": "fp16",
         "order": "deepspeed"},
    ),
    "accelerate's file": (
        "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nfsdp_config:\n"
        "  fsdp_sharding_strategy: SHARD_GRAD_OP\n  fsdp_activation_checkpointing: true\n"
        "machine_rank: 0\nmixed_precision: bf16\nnum_machines: 2\nnum_processes: 16\n",
        {"nodes": 2, "gpus_per_node": 8, "zero_stage": 2, "recompute": "full", "dtype": "bf16"},
    ),
    "accelerate with deepspeed": (
        "deepspeed_config:\n  gradient_accumulation_steps: 4\n  zero_stage: 3\n"
        "  offload_optimizer_device: none\ndistributed_type: DEEPSPEED\nnum_machines: 1\n"
        "num_processes: 8\n",
        {"nodes": 1, "gpus_per_node": 8, "zero_stage": 3, "microbatches": 4},
    ),
    "offloading in megatron": (
        "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --use-distributed-optimizer "
        "--optimizer-cpu-offload --optimizer-offload-fraction 0.5 --cpu-offloading "
        "--cpu-offloading-num-layers 8",
        {"offloaded_optimizer": "0.5", "offloaded_activations": "0.25", "zero_stage": 1},
    ),
    "offloading in deepspeed": (
        '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2, '
        '"offload_optimizer": {"device": "cpu", "pin_memory": true}}}',
        {"offloaded_optimizer": "1", "zero_stage": 2},
    ),
    "offloading in torchtune": (
        "model:\n  _component_: torchtune.models.llama3_1.llama3_1_8b\nbatch_size: 2\n"
        "enable_activation_checkpointing: True\nenable_activation_offloading: True\n",
        {"offloaded_activations": "1", "recompute": "full"},
    ),
    "trainer": (
        "torchrun --nproc_per_node 8 run_clm.py --model_name_or_path meta-llama/Llama-3.1-8B "
        "--per_device_train_batch_size 2 --gradient_accumulation_steps 4 --bf16 True "
        '--gradient_checkpointing True --fsdp "full_shard auto_wrap" --max_seq_length 4096',
        {"gpus_per_node": 8, "model": "llama-3-8b", "microbatch_size": 2, "microbatches": 4,
         "dtype": "bf16", "recompute": "full", "zero_stage": 3, "sequence": 4096},
    ),
    "axolotl": (
        "base_model: NousResearch/Llama-2-7b-hf\nsequence_len: 4096\nmicro_batch_size: 2\n"
        "gradient_accumulation_steps: 1\nadapter: lora\nlora_r: 32\nlora_target_modules:\n"
        "  - q_proj\n  - v_proj\nbf16: auto\ndeepspeed: deepspeed_configs/zero2.json\n"
        "datasets:\n  - path: a/b\n    type: alpaca\nload_in_8bit: true\n",
        {"model": "llama-2-7b", "sequence": 4096, "microbatch_size": 2, "microbatches": 1,
         "lora_rank": 32, "lora_matrices": "query-value", "frozen_weights": "int8",
         "dtype": "bf16"},
    ),
    "llm-foundry": (
        "variables:\n  max_seq_len: 2048\nmax_seq_len: ${variables.max_seq_len}\nmodel:\n"
        "  name: mpt_causal_lm\n  d_model: 4096\n  n_heads: 32\n  n_layers: 32\n"
        "  expansion_ratio: 4\n  max_seq_len: ${max_seq_len}\n  vocab_size: 50368\n"
        "global_train_batch_size: 1024\ndevice_train_microbatch_size: 16\nprecision: amp_bf16\n"
        "fsdp_config:\n  sharding_strategy: FULL_SHARD\n  activation_checkpointing: true\n",
        {"layers": 32, "hidden": 4096, "heads": 32, "ffn": 16384, "vocab": 50368,
         "sequence": 2048, "global_batch": 1024, "microbatch_size": 16, "zero_stage": 3,
         "recompute": "full", "dtype": "bf16"},
    ),
    "composer": (
        "composer -n 8 train.py yamls/mpt-7b.yaml global_train_batch_size=256 model.n_layers=24 "
        "max_seq_len=4096",
        {"gpus_per_node": 8, "global_batch": 256, "layers": 24, "sequence": 4096},
    ),
    "torchtune": (
        "tune run --nnodes 2 --nproc_per_node 8 full_finetune_distributed --config llama3_1/8B_full"
        " batch_size=2 gradient_accumulation_steps=4 tokenizer.max_seq_len=8192",
        {"nodes": 2, "gpus_per_node": 8, "microbatch_size": 2, "microbatches": 4,
         "sequence": 8192},
    ),
    "mesh": (
        "mesh = init_device_mesh(\n    'cuda',\n    mesh_shape=(2, 4, 8),\n"
        "    mesh_dim_names=('dp_replicate', 'dp_shard', 'tp'),\n)",
        {"dp": 8, "tp": 8},
    ),
    "mesh of variables": (
        "tp_size = 4\nmesh = init_device_mesh('cuda', (2, tp_size), mesh_dim_names=('dp', 'tp'))",
        {"dp": 2, "tp": 4},
    ),
    "pbs": (
        "#PBS -l select=4:ncpus=64:ngpus=4\nmpiexec -n 16 python pretrain_gpt.py "
        "--tensor-model-parallel-size 4",
        {"nodes": 4, "gpus_per_node": 4, "tp": 4},
    ),
    "elastic": (
        "torchrun --nnodes=1:4 --nproc_per_node=8 x.py --tensor_model_parallel_size 8",
        {"nodes": 4, "gpus_per_node": 8, "tp": 8},
    ),
    "windows": (
        "TP=4\r\ntorchrun --nnodes 2 \\\r\n  --nproc-per-node 8 \\\r\n x.py "
        "--tensor-model-parallel-size $TP\r\n",
        {"nodes": 2, "gpus_per_node": 8, "tp": 4},
    ),
    "a line without a program": (
        "--bf16 --nnodes 4 --nproc_per_node 8 --tensor-model-parallel-size 4",
        {"nodes": 4, "gpus_per_node": 8, "tp": 4, "dtype": "bf16"},
    ),
    "options alone": (
        'TP=2\nMODEL_ARGS="--tensor-model-parallel-size $TP --num-layers 12"\n',
        {"tp": 2, "layers": 12},
    ),
}  # fmt: skip


@pytest.mark.parametrize("layout", ["(t|)*999999999", "((t)*999)*999)*999|", "t*" + "9" * 5000])
def test_a_layout_of_stages_that_would_never_end_is_not_read(layout: str) -> None:
    taken = take(
        f"torchrun pretrain_gpt.py --pipeline-model-parallel-size 2 "
        f"--num-layers 8 --pipeline-model-parallel-layout '{layout}'"
    )
    assert "layers_per_stage" not in taken.taken
    assert "--pipeline-model-parallel-layout" in taken.unsure


@pytest.mark.parametrize("name", INLINE)
def test_each_format_is_read(name: str) -> None:
    text, wanted = INLINE[name]
    job = take(text)
    assert {key: job.taken.get(key) for key in wanted} == wanted


def test_a_model_file_inside_a_script_keeps_the_norms_of_its_kind() -> None:
    """Qwen3 normalizes queries and keys per head, which its file expresses only by its kind."""
    file = {
        "model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288,
        "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8,
        "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": False,
        "attention_bias": False,
    }  # fmt: skip
    script = "cat > config.json <<'JSON'\n{}\nJSON\ntorchrun --nproc-per-node 8 train.py\n"
    job = read_job(script.format(json.dumps(file)), {}, own_names())
    assert job.taken["qk_norm"] == "per-head"
    assert "attention_bias" not in job.unsure
    llama = read_job(script.format(json.dumps(file | {"model_type": "llama"})), {}, own_names())
    assert "qk_norm" not in llama.taken

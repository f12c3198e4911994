#!/bin/bash
#SBATCH --nodes=4
#SBATCH --gpus-per-node=8
# Llama 3 70B on 32 GPUs, as Megatron-LM takes it.
TP=${TP:-8}
PARALLEL="--tensor-model-parallel-size $TP --pipeline-model-parallel-size 4 --sequence-parallel"
MODEL="--num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64
  --group-query-attention --num-query-groups 8 --seq-length 8192 --swiglu
  --untie-embeddings-and-output-weights --disable-bias-linear --normalization RMSNorm"
srun torchrun --nnodes 4 --nproc-per-node 8 pretrain_gpt.py $PARALLEL $MODEL \
  --micro-batch-size 1 --global-batch-size 256 --bf16 --use-distributed-optimizer

"""Records the three jobs of this folder with torch.profiler.

torchrun --nproc-per-node 2 record_profiles.py KIND FOLDER

KIND is data-parallel (DDP), sharded (FSDP2) or pipelined (1F1B). Any CPU will do; the backend is
gloo. After a warm-up, two steps are recorded with shapes and without stacks, in one file per rank.
The files here were recorded with torch 2.13.0.
"""

import gzip
import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, record_function

WIDTH, BATCH, LAYERS, STEPS = 512, 64, 2, 2


def layer() -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH))


def data_parallel(rank, size):
    layers = nn.Sequential(*(layer() for _ in range(LAYERS)))
    model = DistributedDataParallel(layers, bucket_cap_mb=4)
    return model, lambda batch: model(batch).square().mean().backward()


def sharded(rank, size):
    mesh = dist.device_mesh.init_device_mesh("cpu", (size,))
    model = nn.Sequential(*(layer() for _ in range(LAYERS)))
    for part in model:
        fully_shard(part, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model, lambda batch: model(batch).square().mean().backward()


def pipelined(rank, size):
    model = nn.Sequential(*(layer() for _ in range(LAYERS)))
    stage = PipelineStage(model, rank, size, torch.device("cpu"))
    schedule = Schedule1F1B(
        stage, n_microbatches=4, loss_fn=lambda out, to: (out - to).square().mean()
    )

    def work(batch):
        if rank == 0:
            schedule.step(batch)
        else:
            schedule.step(target=batch)

    return model, work


KINDS = {"data-parallel": data_parallel, "sharded": sharded, "pipelined": pipelined}


def main() -> None:
    kind, folder = sys.argv[1:]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    model, work = KINDS[kind](rank, size)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batch = torch.randn(BATCH, WIDTH)

    def step():
        work(batch)
        with record_function("optimizer"):
            optimizer.step()
        optimizer.zero_grad()

    for _ in range(2):
        step()
    dist.barrier()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recorded:
        for number in range(STEPS):
            with record_function(f"ProfilerStep#{number}"):
                step()
    path = os.path.join(folder, f"{kind}-rank{rank}.json")
    recorded.export_chrome_trace(path)
    with open(path) as file:
        text = json.dumps(json.load(file), separators=(",", ":"))
    os.remove(path)
    with open(path + ".gz", "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        packed.write(text.encode())
    dist.destroy_process_group()


main()

"""The pages' readers of logs and hosts return what those of the command line do."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from figgen.scenarios.taking.hosts import read_hosts
from figgen.scenarios.taking.log_words import collective_rows, log_sentences
from figgen.scenarios.taking.logs import CollectiveLog, Log, read_log
from figgen.translation.modules import printed, script_of
from figgen.translation.sources import Place
from tests.taking.test_collective_logs import NCCL
from tests.taking.test_logs import FAIRSEQ2, MEGATRON, OLD, OOM, TITAN, VERL, waiting
from tests.translation.run import ran

LOGS = (
    NCCL,
    MEGATRON,
    TITAN,
    OOM,
    OLD,
    VERL,
    FAIRSEQ2,
    waiting(7, 80078, "BROADCAST", "5056") + "\n" + waiting(3, 80078),
    waiting(0, 96120, elements="") + "\n" + waiting(7, 64088, elements=""),
    waiting(0, 5) + "\n" + waiting(3, 5),
    waiting(0, 5) + "\n" + waiting(1, 5, elements="7"),
    waiting(0, 5, "_REDUCE_SCATTER_BASE") + "[PG ID 1 Rank 0] [PG 2 Rank 0]",
    "Epoch 1 | iter 100 step 25 | loss train: 3.1, val: n/a | iter time: 205.50 ms (step)",
    "Epoch 0/9 ━━━╸  100/1000 0:01:40 • 0:15:00 1.25it/s v_num: 0",
    "nothing",
    "elapsed_time_per_iteration_ms: 4.25K | tokens_per_sec_per_gpu: 15.4K",
    "iteration 1/9 | train_step_timing in s: 6.131 | global_batch_size: 512",
    "{'train_runtime': 3600.5, 'train_steps_per_second': 0.095}",
    "completed step: 10, seconds: 3.411, TFLOP/s/device: 441.2, Tokens/s/device: 9605.1",
    "{'memory(GiB)': 63.9, 'train_speed(iter/s)': 0.113}",
    "1%|#| 10/99 [01:23<2:15:00,  8.18s/it] 2%|#| 20/99 [02:45<2:14:00, 1.25it/s]",
)
HOSTS = (
    "a1\na2\n",
    "node[008-011,7],b2",
    "w-0 slots=8\nw-1:4",
    "rank 0=a slot=0\nrank 1=b slot=0:2",
    "0: a1\n1: a2",
    "DeviceMesh('cuda', [[0, 2], [1, 3]], mesh_dim_names=('dp', 'tp'))",
    "[rank0]: tensor parallel group [0, 1]",
    "torchrun x.py",
    NCCL,
)
PROGRAM = """
import {{ readFileSync }} from "node:fs";
import {{ read_log }} from "./{logs}";
import {{ read_hosts }} from "./{hosts}";
import {{ collective_rows, log_sentences }} from "./{words}";
const [logs, hosts] = JSON.parse(readFileSync("data.json", "utf-8"));
const logOf = (log) => log && {{ ...log, ...(log.rows && {{ fit: log.fit }}) }};
const toldOf = (log) => log && [null, 4e11].map((rate) =>
  [log_sentences(log, rate), log.rows ? collective_rows(log, rate) : []]);
const hostsOf = (one) => one && {{ ...one, ranks: [...one.ranks] }};
console.log(JSON.stringify([logs.map((text) => logOf(read_log(text))),
  hosts.map((text) => hostsOf(read_hosts(text))), logs.map((text) => toldOf(read_log(text)))]));
"""


def told(log: Log, rate: float | None) -> list[object]:
    rows = collective_rows(log, rate) if isinstance(log, CollectiveLog) else []
    return [log_sentences(log, rate), rows]


def test_logs_and_hosts_are_read_alike(tmp_path: Path) -> None:
    logs, hosts = "figgen.scenarios.taking.logs", "figgen.scenarios.taking.hosts"
    words = "figgen.scenarios.taking.log_words"
    scripts = printed(
        [
            Place(logs, "read_log"),
            Place(hosts, "read_hosts"),
            Place(words, "log_sentences"),
            Place(words, "collective_rows"),
        ]
    )
    program = PROGRAM.format(logs=script_of(logs), hosts=script_of(hosts), words=script_of(words))
    shown = ran(tmp_path, program, scripts, [LOGS, HOSTS])
    wanted: list[list[object]] = [[], [], []]
    for text in LOGS:
        log = read_log(text)
        data = asdict(log) if log is not None else None
        if data is not None and isinstance(log, CollectiveLog):
            data["fit"] = log.fit
        wanted[0].append(data)
        wanted[2].append(log and [told(log, rate) for rate in (None, 4e11)])
    for text in HOSTS:
        found = read_hosts(text)
        data = asdict(found) if found is not None else None
        if data is not None:
            data["ranks"] = list(data["ranks"].items())
        wanted[1].append(data)
    assert shown == json.loads(json.dumps(wanted))
    assert [one is None for one in wanted[0]].count(True) == 1

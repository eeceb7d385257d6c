"""The root cause of a death. Log excerpts as engines print them; the expected line is picked by eye."""

from __future__ import annotations

import pytest

from crossover.launchers.root_cause import log_tail, root_cause

STAMP = "2026-11-29T20:53:26.123456789Z "

PORT = """
INFO:     Started server process [60858]
INFO:     Application startup complete.
ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 44319): [errno 98] address already in use
INFO:     Application shutdown complete.
"""
WRAPPED = """
(EngineCore pid=26) INFO 11-05 04:16:40 [core.py:133] Initializing a V1 LLM engine
(EngineCore pid=26) ERROR 11-05 04:16:47 [core.py:708] Traceback (most recent call last):
(EngineCore pid=26) ERROR 11-05 04:16:47 [core.py:708]   File "core.py", line 7, in run
(EngineCore pid=26) ERROR 11-05 04:16:47 [core.py:708] torch.OutOfMemoryError: CUDA out of memory.
(APIServer pid=1)     raise RuntimeError(
(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""
ONLY_WRAPPER = """
(APIServer pid=1)     raise RuntimeError(
(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
Process SpawnProcess-1:
Traceback (most recent call last):
"""
WARMUP = """
[2026-01-10 13:23:27] Initialization failed. warmup error: Traceback (most recent call last):
    assert res.status_code == 200, f"{res=}, {res.text=}"
AssertionError: res=<Response [502]>, res.text=''
"""
USAGE = """
usage: vllm serve [model_tag] [options]
vllm: error: unrecognized arguments: --tensor-paralel-size 8
"""


WRAPPED_AGAIN = """
[2026-03-01 08:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/sgl/srt/model_executor/model_runner.py", line 934, in init_cuda_graphs
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 448.00 MiB. GPU 0 has 95 GiB of which 68.88 MiB is free.
During handling of the above exception, another exception occurred:
Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 448.00 MiB. GPU 0 has 95 GiB.
[2026-03-01 08:00:00] Received sigquit from a child process. It usually means the child failed.
"""
OTHER_SERVER = """
loading
Traceback (most recent call last):
  File "serve.py", line 3, in main
KeyError: 'model'
"""
ABORTED = """
(EngineCore pid=26) INFO 11-05 04:16:40 [core.py:133] Initializing a V1 LLM engine
Fatal Python error: Aborted
"""

NO_IMAGE = "\x1b[31mFATAL:   \x1b[0mcould not open image /x/engine.sif: no such file or directory"


@pytest.mark.parametrize(
    ("log", "kind", "part"),
    [
        (PORT, "port_in_use", "port 44319 is in use"),
        (WRAPPED, "out_of_memory", "torch.OutOfMemoryError: CUDA out of memory"),
        (ONLY_WRAPPER, "engine_died", None),
        (WARMUP, "warmup_failed", "warmup error: the request to itself got HTTP 502"),
        (USAGE, "invalid_argument", "unrecognized arguments: --tensor-paralel-size 8"),
        (WRAPPED_AGAIN, "out_of_memory", "during graph capture: torch.OutOfMemoryError: CUDA out of memory."),
        (OTHER_SERVER, "engine_died", "KeyError: 'model'"),
        (ABORTED, "engine_died", "Fatal Python error: Aborted"),
        (NO_IMAGE, "engine_died", "could not open image /x/engine.sif: no such file or directory"),
        ("", "engine_died", None),
    ],
)
def test_root_cause(log, kind, part):
    found = root_cause([STAMP + line for line in log.splitlines()])
    assert found.kind == kind
    assert (found.line is None) if part is None else (part in (found.line or ""))


def test_unknown_is_said_not_guessed():
    assert "unknown" in str(root_cause(ONLY_WRAPPER.splitlines()))


def test_the_tail_has_no_receive_times(tmp_path):
    (tmp_path / "log").write_text("".join(f"{STAMP}line {index}\n" for index in range(5)))
    assert log_tail(tmp_path / "log", 2) == ("line 3", "line 4")
    assert log_tail(tmp_path / "absent") == ()

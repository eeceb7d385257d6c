"""vLLM's start: loading, compilation, warm-up, graph capture, engine initialisation, version."""

from __future__ import annotations

import re

from crossover.logs.builder import Builder, rank_label
from crossover.logs.lines import Line
from crossover.logs.numbers import NUM, number
from crossover.logs.table import Handler, kind
from crossover.logs.vllm.waterfall import in_gib


def phases(name: str) -> Handler:
    """A handler for a figure that a rank states once a model (target, draft): they add up within the rank.

    Lines without a process prefix may come from any rank, so there the largest counts.
    """

    def handle(builder: Builder, line: Line, match: re.Match[str]) -> None:
        value = number(match[1])
        if rank_label(line) is None:
            builder.at_rank(name, line, value)
        else:
            builder.add_at_rank(name, line, match[1], value)

    return handle


def weights_read(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Once a model (target, draft), then one statement of the whole load; what comes after that is a reload."""
    if rank_label(line) not in builder.per_rank.get("model_load_gib", {}):
        phases("weights_load_s")(builder, line, match)


def model_loaded(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """`Model loading took 7.16 GiB memory and 10.35 seconds`; older versions gave no seconds, and said GB.

    Gaudi: `took in total 15.05 GiB of device memory (15.05 GiB/94.62 GiB used)`, the second being the whole device.
    """
    builder.at_rank("model_load_gib", line, in_gib(match[1], match[2]))
    largest = builder.per_rank["model_load_gib"][rank_label(line)]  # a draft model may be stated after the target
    builder.add_memory(line, "weights", largest)
    if match[3]:
        builder.add_memory(line, "visible", number(match[3]))
    if match[4]:
        builder.at_rank("model_load_s", line, number(match[4]))


def weights_streamed(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """A streaming loader's own time: stands in for the time of loading where that is not printed."""
    builder.at_rank("weights_streamed_s", line, number(match[1] or match[2]))


def memory_profiled(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The profiling run, compilation included; the slowest rank counts."""
    builder.raw["memory_profiling_s"] = max(number(match[1]), builder.raw.get("memory_profiling_s", 0.0))


def warmed_up(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Gaudi captures its graphs in the warm-up: `finished in 49 secs, allocated 14.19 GiB of device memory`."""
    phases("kernel_warmup_s")(builder, line, match)
    if match[2]:
        builder.at_rank("graph_capture_gib", line, in_gib(match[2], match[3]))


def compile_part(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """A part of compilation: stands in for the total where that is not printed."""
    builder.add_at_rank("compile_parts_s", line, match[0], number(match[1]))


def compile_cached(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Compiled graphs came from the cache: the start was warm."""
    builder.raw.setdefault("compile_cache", "warm")
    if match[1]:
        builder.add_at_rank("compile_parts_s", line, match[0], number(match[1]))


def compile_cold(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """A graph was compiled: the start was cold, at least in part."""
    builder.raw["compile_cache"] = "cold"
    if match[1]:
        compile_part(builder, line, match)


def compile_tpu(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """TPU: each kind of graph is compiled for itself, and lines may be alike."""
    builder.add_at_rank("compile_parts_s", line, f"line {line.number}", number(match[1]))


def downloaded(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Weights came over the network: the start is no measure of reading them."""
    builder.raw["weights_download_s"] = number(match[1])


def graphs_captured(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """`Graph capturing finished in 14 secs, took 0.84 GiB`; V0 before 0.6.4 gave no size."""
    labelled = rank_label(line) is not None
    for name, text in (("graph_capture_s", match[1]), ("graph_capture_gib", match[2])):
        if text is None:
            continue
        if text.startswith("-"):
            builder.raw[f"{name}_withheld"] = f"printed as {text}: memory was given back during the capture"
        elif labelled:
            builder.add_at_rank(name, line, match[0], number(text))
        else:
            builder.at_rank(name, line, number(text))


def graph_bar(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """A finished progress bar of the capture: as many steps as graph sizes."""
    builder.set("graph_count", max(int(match[1]), builder.single.get("graph_count", 0)))


def graph_profile(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """`Profiling CUDA graph memory: PIECEWISE=51 (largest=512), FULL=35 (largest=256)`: sizes a mode."""
    sizes = [int(count) for count in re.findall(r"\b[A-Z_]{4,30}=(\d{1,5}) \(largest", match[1])]
    builder.set_first("graph_count", max(sizes))


def engine_ready(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """`init engine (profile, create kv cache, warmup model) took 5.07 s (compilation: 1.74 s)`."""
    builder.at_rank("engine_init_s", line, number(match[1]))
    if match[2]:
        builder.at_rank("compile_of_init_s", line, number(match[2]))


_LOADED = {"model_load_gib", "kv_cache_gib", "kv_cache_tokens", "engine_init_s"}


def version(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The server says its version first, so what an earlier server in the same log said is over."""
    if builder.per_rank.keys() & _LOADED:
        builder.dead = True  # whatever ended it: it was not seen
    builder.new_start()
    builder.facts.pop("shutdown", None)
    builder.version = match[1].lstrip("v")


def resolve(builder: Builder) -> None:
    """Fills the compile time from its parts where no total is printed, and the load time from the loader's own."""
    if builder.longest("weights_load_s") is None and (streamed := builder.longest("weights_streamed_s")) is not None:
        builder.per_rank["weights_load_s"] = {None: streamed}
    if builder.longest("compile_s") is None:
        value = builder.longest("compile_of_init_s") or builder.longest("compile_parts_s")
        if value is not None:
            builder.per_rank["compile_s"] = {None: round(value, 6)}


KINDS = (
    kind("weights", "Loading weights took", rf"Loading weights took {NUM} ?s", weights_read),
    kind(
        "model",
        ("Loading model weights took", "Model loading took"),
        rf"(?:Loading model weights|Model loading) took (?:in total )?{NUM} ?(Gi?B|MiB)(?: (?:of device )?memory)?"
        rf"(?: \([^/\n]{{1,24}}/{NUM} GiB used\))?(?: and {NUM} s)?",
        model_loaded,
        spans=2,
    ),
    kind(
        "weights_streamed",
        ("Overall time to stream ", "Deserialized "),
        rf"Overall time to stream \d[\d.]{{0,12}} \w{{1,5}}(?: of all files)?(?: to [^:\n]{{1,40}}(?::\d{{1,3}})?)?: "
        rf"{NUM} ?s, |Deserialized \d[\d.]{{0,12}} \w{{1,5}} in {NUM} ?s, ",
        weights_streamed,
        figure=False,
    ),
    kind(
        "compile",
        ("torch.compile t", "graph compilation takes"),
        rf"(?:torch\.compile|graph compilation) (?:takes|took) {NUM} s in total",
        phases("compile_s"),
    ),
    kind("profiling", "Memory profiling t", rf"Memory profiling (?:takes|took) {NUM} seconds", memory_profiled),
    kind("dynamo", "Dynamo bytecode transform time", rf"Dynamo bytecode transform time: {NUM} s", compile_part),
    kind(
        "compile_graph",
        ("Compiling a graph for", "Compiling the graph for"),
        rf"Compiling (?:a|the) graph for (?:[^\n]{{1,80}}? takes {NUM} s|shapes |general shapes$)",
        compile_cold,
    ),
    kind(
        "compile_cached",
        "Directly load the compiled",
        rf"Directly load the compiled (?:[^\n]{{1,160}}? took {NUM} s|graph for shape \S{{1,40}} from the cache)",
        compile_cached,
    ),
    kind(
        "compile_loaded",
        "Directly load AOT compilation",
        r"Directly load AOT compilation()",
        compile_cached,
        figure=False,
    ),
    kind(
        "compile_tpu",
        ("ompilation finished in", "Compilation for "),
        rf"(?:ompilation finished in (?:in )?|Compilation for (?:prefix )?(?:prefill|decode) done in ){NUM} "
        r"(?:\[secs\]|s\b)",
        compile_tpu,
    ),
    kind(
        "downloaded",
        "Time spent downloading weights for",
        rf"Time spent downloading weights for [^\n]{{1,200}}?: {NUM} seconds",
        downloaded,
    ),
    kind(
        "warmup",
        (
            "Initial profiling/warmup run took",
            "Kernel warmup took",
            "kernel warmup took",
            "armup finished in",
            "armup compiled ",
        ),
        rf"(?:Initial profiling/warmup run took|[Kk]ernel warmup took|[Ww]armup finished in"
        rf"|[Ww]armup compiled \d{{1,9}} units in) {NUM} ?s(?:ecs, allocated {NUM} (GiB|MiB) of device memory)?",
        warmed_up,
    ),
    kind(
        "graphs",
        "raph capturing finished in",
        rf"(?:G|Encoder g)raph capturing finished in {NUM} secs(?:, took (-?\d[\d,]{{0,12}}(?:\.\d+)?) GiB)?",
        graphs_captured,
        spans=2,
    ),
    kind(
        "graph_bar",
        ("Capturing CUDA graph", "Capturing ACL graph", "Capturing cudagraph"),
        r"Capturing (?:CUDA|ACL|cuda)[^%\n]{0,80}: 100%\|[^|\n]{0,400}\| ?(\d{1,5})/\1 ",
        graph_bar,
        figure=False,
        joins=False,
    ),
    kind(
        "graph_profile",
        "Profiling CUDA graph memory:",
        r"Profiling CUDA graph memory: ((?:[A-Z_]{4,30}=\d{1,5} \(largest=\d{1,7}\)(?:, )?){1,4})",
        graph_profile,
    ),
    kind(
        "engine_init",
        "init engine (profile",
        rf"init engine \(profile, create kv cache, warmup model\) took {NUM} s(?:econds)?(?: \(compilation: "
        rf"{NUM} s)?",
        engine_ready,
        spans=2,
    ),
    kind(
        "version",
        ("vLLM API server version", "█  version", "] version ", "LLM engine (v", "vLLM server version"),
        r"(?:server version |█  version |\.py:\d{1,5}\] version |LLM engine \()(v?\d[\w.+-]{0,80})",
        version,
        joins=False,
    ),
)

"""What does not fit when vLLM starts: memory, KV cache, Mamba blocks, lengths. Each ends the start."""

from __future__ import annotations

import re

from crossover.logs.builder import Builder, rank_label
from crossover.logs.incidents import Kind, Severity
from crossover.logs.lines import Line
from crossover.logs.numbers import NUM, number
from crossover.logs.table import kind


def _dead(builder: Builder, line: Line, incident: Kind, message: str, advice: str | None = None) -> None:
    builder.incidents.add(incident, line, message=message, advice=advice, key=message, repeats=False)
    builder.dead = True


def kv_too_small(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """One request of full length does not fit: what it needs, what there is, what would fit."""
    wanted, needed, available, printed = match.groups()
    message = (
        f"a request of {wanted} tokens needs {number(needed):g} GiB of KV cache, available are {float(available):g} GiB"
    )
    _dead(builder, line, Kind.KV_TOO_SMALL, message, _shorter(int(wanted), number(needed), float(available), printed))


def _shorter(wanted: int, needed: float, available: float, printed: str | None) -> str | None:
    if printed:
        return f"lower max-model-len to {printed} (the engine's estimate)"
    if needed <= 0 or not 0 < available < needed:
        return None
    return f"lower max-model-len to about {int(wanted * available / needed)} (linear: full attention only)"


def kv_too_small_tokens(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The older wording, in tokens."""
    message = f"the KV cache holds {match[2]} tokens, fewer than the maximum length of {match[1]}"
    advice = f"lower max-model-len to {match[2]}, or give the KV cache more memory"
    _dead(builder, line, Kind.KV_TOO_SMALL, message, advice)


def no_kv(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Nothing is left for the KV cache at all."""
    builder.incidents.add(Kind.KV_TOO_SMALL, line, key="none", repeats=False)
    builder.dead = True


def mamba_blocks(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """More requests than Mamba cache blocks; each pair of figures is one event."""
    _dead(builder, line, Kind.MAMBA_BLOCKS_TOO_FEW, match[0], f"set max-num-seqs to {match[2]}")


def device_occupied(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Less memory is free than the engine may take: another process holds it, or the share is too large."""
    where, free, visible, share, wanted = match.groups()
    builder.add_memory(line, "visible", number(visible))
    builder.configure({"memory_fraction": float(share)})
    device = where.strip() or "the device"
    message = (
        f"{number(free):g} of {number(visible):g} GiB are free on {device} at the start, "
        f"{number(wanted):g} GiB are wanted (share {float(share):g})"
    )
    fits = int(100 * number(free) / number(visible)) / 100 if number(visible) else 0
    advice = f"stop the other process on the device, or lower gpu-memory-utilization to {fits:.2f}"
    _dead(builder, line, Kind.GPU_OCCUPIED, message, advice)


def swap_space(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """V0 ends when it can swap no further, and does not start where it would swap more than the host has."""
    advice = "raise swap-space, or give the KV cache more memory, so that less is swapped"
    if match[0].startswith("Too"):
        advice = "lower swap-space: it counts once for each device of the host"
    _dead(builder, line, Kind.OUT_OF_MEMORY, line.message, advice)


def memory_grew(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Newer versions go on when memory became free while they measured, and size the cache otherwise."""
    builder.incidents.add(
        Kind.GPU_OCCUPIED,
        line,
        severity=Severity.WARNING,
        advice="another process gave memory back while the engine measured: this KV size is not repeatable",
        key="grew",
        rank=rank_label(line),
    )


def memory_changed(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """Memory became free while the engine measured: another process ended, or was on the device."""
    builder.incidents.add(
        Kind.GPU_OCCUPIED,
        line,
        advice="another process gave memory back while the engine measured: start again with the device to itself",
        key="changed",
        repeats=False,
    )
    builder.dead = True


def fitted(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """`Auto-fit max_model_len: reduced from 262144 to 131072 to fit in available GPU memory (4.25 GiB ...)`."""
    builder.config["max_model_len"] = int(match[2])
    builder.incidents.add(
        Kind.CONFIG_ADJUSTED,
        line,
        message=f"the maximum length was reduced from {match[1]} to {match[2]} tokens to fit the KV cache",
        key="max_model_len",
        repeats=False,
    )


def fits(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """The full length fits, or there is no KV cache to fit it to."""
    builder.config["max_model_len"] = int(match[1])


def too_long_for_model(builder: Builder, line: Line, match: re.Match[str]) -> None:
    """`User-specified max_model_len (32768) is greater than the derived max_model_len (...=8192 or ...)`."""
    lengths = [int(length) for length in re.findall(r"=(\d{1,9})", match[2])]
    limit = f" of {min(lengths)}" if lengths else ""
    builder.incidents.add(
        Kind.CONFIG_CONFLICT,
        line,
        message=f"max-model-len {match[1]} is above the model's own length{limit}",
        advice=f"lower max-model-len{f' to {min(lengths)}' if lengths else ''}, or scale the positions explicitly",
        key="max_model_len",
        repeats=False,
    )
    if line.level not in ("WARNING", "WARN", "INFO"):
        builder.dead = True


KINDS = (
    kind(
        "kv_too_small",
        "To serve at least one request",
        rf"max seq len \((\d+)\), \(?{NUM} Gi?B KV cache is needed, which is larger than the available KV "
        rf"cache "
        r"memory \((-?\d[\d.]{0,12}) Gi?B\)(?:.{0,60}estimated maximum model length is (\d+))?",
        kv_too_small,
        spans=4,
    ),
    kind(
        "kv_too_small_tokens",
        "that can be stored in KV cache",
        r"max seq len \((\d+)\) is larger than the maximum number of tokens that can be stored in KV cache "
        r"\((\d+)\)",
        kv_too_small_tokens,
    ),
    kind(
        "no_kv",
        ("No available memory for the cache blocks", "Cannot auto-fit max_model_len: not enough"),
        "No available memory for the cache blocks|Cannot auto-fit max_model_len: not enough",
        no_kv,
        figure=False,
    ),
    kind(
        "mamba_blocks",
        "available Mamba cache blocks",
        r"max_num_seqs \((\d+)\) exceeds available Mamba cache blocks \((\d+)\)",
        mamba_blocks,
    ),
    kind(
        "device_occupied",
        "is less than desired",
        rf"(?:Free|Available) memory on ([^(\n]{{0,30}}?) ?\({NUM}/{NUM} GiB\) on startup is less than desired "
        rf"(?:GPU|CPU|\w{{2,8}}) memory utilization \((0?\.\d+|1(?:\.0+)?), {NUM} GiB\)",
        device_occupied,
    ),
    kind(
        "swap_space",
        ("lack of CPU swap space", "Too large swap space"),
        r"lack of CPU swap space|Too large swap space",
        swap_space,
        figure=False,
        joins=False,
    ),
    kind(
        "memory_grew",
        "Free memory grew by",
        r"Free memory grew by \d",
        memory_grew,
        figure=False,
    ),
    kind(
        "memory_changed",
        "Error in memory profiling",
        r"Error in memory profiling\. Initial free memory \d",
        memory_changed,
        figure=False,
    ),
    kind(
        "fitted",
        "Auto-fit max_model_len: reduced from",
        r"Auto-fit max_model_len: reduced from (\d+) to (\d+)\b",
        fitted,
    ),
    kind(
        "fits",
        ("Auto-fit max_model_len: full model", "Auto-fit max_model_len: attention-free"),
        r"Auto-fit max_model_len: [^\n]{0,60}?(?:context length |max_model_len=)(\d+)\b",
        fits,
    ),
    kind(
        "too_long_for_model",
        "User-specified max_model_len",
        r"User-specified max_model_len \((\d+)\) is greater than the derived max_model_len \(([^()\n]{0,200})",
        too_long_for_model,
    ),
)

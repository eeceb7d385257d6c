"""The line source: text blocks from anywhere, cleaned of what terminals and containers add; heads parsed.

Statements are searched for inside a line, never anchored at its start. So prefixes need no removal: the
*head* of a line is all that stands before the statement; the engine's clock and ranks are the nearest ones.
A progress bar, a container stamp or another line glued in front only makes the head longer.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO, NamedTuple, cast

from crossover.errors import InputError
from crossover.logs.envelopes import join_pieces, unwrap_docker

BLOCK_BYTES = 1 << 18
_LONGEST_LINE = 1 << 20  # a longer line is cut, so that memory stays constant

_COMPRESSED: dict[bytes, Callable[..., object]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}


def read_blocks(source: Path | str | Iterable[str]) -> Iterator[str]:
    """Yields the source as text blocks, each but the last ending with a newline.

    Args:
        source: a file (plain, gzip, bzip2 or xz; UTF-8, or UTF-16 with a byte order mark), `-` for standard
            input, or lines with or without their newline.

    Raises:
        InputError: the file cannot be opened or decompressed.
    """
    if isinstance(source, str | Path):
        chunks = _decode(_raw(source))
    else:
        chunks = (line if line.endswith("\n") else line + "\n" for line in source)
    yield from _whole_lines(chunks)


def _raw(source: Path | str) -> Iterator[bytes]:
    if str(source) == "-":
        yield from _chunks(sys.stdin.buffer)
        return
    path = Path(source)
    try:
        with path.open("rb") as plain:
            magic = plain.read(6)
        opener = next((how for mark, how in _COMPRESSED.items() if magic.startswith(mark)), None)
        with cast("IO[bytes]", opener(path, "rb") if opener else path.open("rb")) as stream:
            yield from _chunks(stream)
    except (OSError, EOFError, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read: {reason}", file=path, remedy="give a log file, or - for stdin") from error


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    read = getattr(stream, "read1", stream.read)  # read1 returns what a pipe has, without waiting for a full block
    while chunk := read(BLOCK_BYTES):
        yield chunk


def _decode(chunks: Iterator[bytes]) -> Iterator[str]:
    decoder = None
    for chunk in chunks:
        if decoder is None:
            wide = chunk[:2] in (b"\xff\xfe", b"\xfe\xff")
            decoder = codecs.getincrementaldecoder("utf-16" if wide else "utf-8-sig")(errors="replace")
        yield decoder.decode(chunk)
    if decoder is not None:
        yield decoder.decode(b"", final=True)


def _whole_lines(chunks: Iterable[str]) -> Iterator[str]:
    held: list[str] = []
    size = 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if size < BLOCK_BYTES:
            continue
        text = "".join(held)
        cut = last_boundary(text) or (len(text) if size > _LONGEST_LINE else 0)
        if cut:
            yield text[:cut]
        held = [text[cut:]]
        size = len(held[0])
    rest = "".join(held)
    if rest:
        yield rest


def last_boundary(text: str) -> int:
    """Returns where `text` can be cut so that what follows begins a new entry (0 if nowhere).

    A line that a terminal wrapped stays in one piece; after 50 lines without a prefix any newline will do.
    """
    end = text.rfind("\n")
    newline = end
    for _ in range(50):
        if newline <= 0:
            break
        previous = text.rfind("\n", 0, newline)
        if begins_entry(text[previous + 1 : newline]):
            return previous + 1
        newline = previous
    return end + 1


_BEGINS_ENTRY = re.compile(
    r"[\s│┃║|]*(?:\(\w[^()\n]{0,60}pid=|\[(?:\d{2,4}[-:]|gpu_id|gpu=|rank\d|[WIEF]\d{3,4} |[A-Z]\w{1,30}\])"
    r"|(?:INFO|WARNING|ERROR|DEBUG|CRITICAL)\b|\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d|[IWEF]\d{4} |\{\""
    r"|Traceback \(|(?:[a-z_]\w{0,40}\.){0,6}[A-Z]\w{1,60}(?:Error|Exception): |Loading \w{2,20} checkpoint|\[Gloo\])"
)

_STAMPED = re.compile(r"\d\d:\d\d:\d\d|\(\w{1,40} pid=\d|^[\w.-]{1,60} +\| ")


def begins_entry(line: str) -> bool:
    """Says whether a line starts an entry of its own, rather than going on with the line above it."""
    return _BEGINS_ENTRY.match(line) is not None or _STAMPED.search(line, 0, 120) is not None


_ESCAPES = re.compile(
    r"(?:\x1b|\^\[|␛|#033)(?:\[[0-?]{0,16}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)?"
    r"|[()][A-Z0-9]|[=>78DEHM])"
    r"|\[\d{1,3}(?:;\d{1,3}){0,5}m"
)


def _has_escapes(block: str) -> bool:
    """Single characters first: they are found many times faster than longer texts."""
    return "\x1b" in block or ("^" in block and "^[[" in block) or "[0m" in block or "␛[" in block or "#033[" in block


def clean(block: str) -> str:
    """Returns the block without ANSI codes and envelopes of containers; a carriage return breaks the line."""
    if "{" in block and '{"log":' in block:
        block = unwrap_docker(block)
    block = join_pieces(block)
    if _has_escapes(block):
        block = _ESCAPES.sub("", block)
    if "\r" in block:
        block = block.replace("\r\n", "\n").replace("\r", "\n")
    if "│" in block:
        block = _BOX.sub("", block)
    return block


_BOX = re.compile(r"(?m)^[│┃║] ?| *[│┃║]$")


class Head(NamedTuple):
    """What stands before a statement. Times are ISO-8601 as far as the line has them."""

    t: str | None
    """The engine's own clock; the outer one where the line has no other."""
    t_outer: str | None
    rank: dict[str, int] | None
    process: str | None
    """The process as vLLM names it, such as `EngineCore_DP0` or `Worker_TP1`."""
    pid: int | None
    level: str | None


_STAMP = re.compile(
    r"(?P<full>\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)"
    r"|\[[WIEF](?P<glog>\d{3,4}) (?P<glog_clock>\d\d:\d\d:\d\d(?:\.\d{1,9})?)"
    r"|(?<![\d-])(?P<month>\d\d-\d\d) (?P<clock>\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)"
    r"|(?<![\w:.])(?P<time>\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)(?![\w:])"
    r"|\b(?P<name>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}(?P<day>\d{1,2}) "
    r"(?P<syslog>\d\d:\d\d:\d\d)"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_PREFIX_WIDTH = 80
_ZONED = re.compile(r"\dT\d.*(?:Z|[+-]\d\d:?\d\d)$")
_RANKS = re.compile(
    r"(?:(?<![A-Za-z])|(?<=_))"
    r"(ATTN_CP|ATTN_TP|ATTN_DP|MOE_DP|MOE_EP|MOE_TP|DCP|PCP|DP|TP|PP|EP|CP)(\d{1,5})(?![A-Za-z0-9])"
)
_NUMBERED = re.compile(r"(?:\b(?:gpu_id|gpu|tp_rank|rank)=|\[rank)(\d{1,5})\b")
_PROCESS = re.compile(r"\((\w[\w:.-]{0,60})(?: rank=\d+|(?: [A-Z]{2,4}\d{1,5}){1,4})?,? pid=(\d+)")
_ENGINE = re.compile(r"\(EngineCore_(\d{1,5}) pid=")
_LEVEL = re.compile(r"\b(DEBUG|INFO|WARNING|ERROR|CRITICAL|WARN)\b")


_VLLM_HEAD = re.compile(
    r"(\((?:APIServer|EngineCore|Worker)\w{0,40} pid=\d{1,9}\) )?([A-Z]{4,8}) (\d\d-\d\d) (\d\d:\d\d:\d\d) "
    r"\[?[\w/]{1,60}\.py:\d{1,5}\] "
)
_SGLANG_HEAD = re.compile(r"\[(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)((?: [A-Z_]{2,8}\d{1,4}){0,6})\] ")


def parse_head(head: str) -> Head:
    """Parses what stands before a statement, the usual heads by a short way (see `parse_any_head`)."""
    match = _VLLM_HEAD.fullmatch(head)
    if match is not None:
        prefix, level, day, clock = match.groups()
        process, pid, rank = _process(prefix) if prefix else (None, None, None)
        return Head(f"--{day}T{clock}", None, rank, process, pid, level)
    match = _SGLANG_HEAD.fullmatch(head)
    if match is not None:
        date, clock, tags = match.groups()
        return Head(f"{date}T{clock}", None, ranks_of(tags) if tags else None, None, None, None)
    return parse_any_head(head)


@lru_cache(maxsize=1024)
def _process(prefix: str) -> tuple[str | None, int | None, dict[str, int] | None]:
    head = parse_any_head(prefix)
    return head.process, head.pid, head.rank


@lru_cache(maxsize=1024)
def ranks_of(tags: str) -> dict[str, int] | None:
    """Returns the ranks that a text such as ` DP0 TP1` names; the same object for the same text."""
    return _ranks(tags)


@lru_cache(maxsize=1024)
def parse_any_head(head: str) -> Head:
    """Parses what stands before a statement: the nearest stamp is the engine's, the first the outer clock's.

    A single RFC 3339 stamp with a zone is a container's: it serves as `t` where the engine gives none.
    """
    head = head[-600:]
    stamps = [(match.start(), iso(match)) for match in _STAMP.finditer(head)]
    nearest = stamps[-1][1] if stamps else None
    process = pid = None
    for match in _PROCESS.finditer(head):
        process, pid = match[1], int(match[2])
    level = None
    for match in _LEVEL.finditer(head):
        level = match[1]
    return Head(nearest, _outer(stamps), _ranks(head), process, pid, level)


def _outer(stamps: list[tuple[int, str]]) -> str | None:
    """The first of the stamps that stand together in front of the statement; a zoned one counts wherever it is."""
    if not stamps:
        return None
    first = len(stamps) - 1
    while first and stamps[first][0] - stamps[first - 1][0] <= _PREFIX_WIDTH:
        first -= 1
    if first < len(stamps) - 1 or _ZONED.search(stamps[first][1]):
        return stamps[first][1]
    return stamps[0][1] if _ZONED.search(stamps[0][1]) else None


def iso(match: re.Match[str]) -> str:
    """Returns a stamp as ISO-8601: `2026-11-29T20:53:26`, `--11-29T20:58:05` or `T20:58:05`."""
    if match["full"]:
        text = match["full"].replace("/", "-").replace(",", ".")
        return text[:10] + "T" + text[11:]
    if match["month"]:
        return f"--{match['month']}T{match['clock'].replace(',', '.')}"
    if match["glog"]:
        return f"--{int(match['glog'][:-2]):02d}-{match['glog'][-2:]}T{match['glog_clock']}"
    if match["time"]:
        return "T" + match["time"].replace(",", ".")
    return f"--{_MONTHS.index(match['name']) + 1:02d}-{int(match['day']):02d}T{match['syslog']}"


def _ranks(head: str) -> dict[str, int] | None:
    found: dict[str, int] = {}
    for match in _RANKS.finditer(head):
        found[match[1].lower()] = int(match[2])
    if not found and (numbered := _NUMBERED.search(head)):
        found["tp"] = int(numbered[1])
    if not found and (engine := _ENGINE.search(head)):
        found["dp"] = int(engine[1])
    return found or None


class Line:
    """One line that carries a statement: `text` is whole, `start` is where the statement's trigger begins."""

    __slots__ = ("_head", "number", "start", "text")

    def __init__(self, text: str, start: int = 0, number: int = 0) -> None:
        self.text, self.start, self.number = text, start, number
        self._head: Head | None = None

    @property
    def head(self) -> Head:
        if self._head is None:
            self._head = parse_head(self.text[: self.start])
        return self._head

    @property
    def t(self) -> str | None:
        return self.head.t

    @property
    def t_outer(self) -> str | None:
        return self.head.t_outer

    @property
    def rank(self) -> dict[str, int] | None:
        return self.head.rank

    @property
    def process(self) -> str | None:
        return self.head.process

    @property
    def level(self) -> str | None:
        return self.head.level

    @property
    def message(self) -> str:
        """The line without its prefixes, for a person: at most 300 characters."""
        return message_of(self.text)

    def seconds(self) -> float | None:
        """The line's clock in seconds, for differences only (see `seconds_of`)."""
        return seconds_of(self.t)


CONTAINER_STAMP = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]{8,24}Z ")
_PREFIX = re.compile(
    r"^[\s│┃║|]*(?:\d{4}-\d\d-\d\dT\S+\s+){0,2}(?:std(?:out|err) [FP] )?(?:\([^()]{1,80}\)\s*)*"
    r"(?:\[\d[^\]]{5,60}\]\s*|(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):?\s+)?\d[\d-]{4,9} [\d:.,]{8,15} )?"
    r"(?:-? ?(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) ?-?:?\s*)?(?:\[?[\w/]{1,60}\.(?:py|rs):\d+\]?\s*)?"
)


_ANY_HEAD = re.compile(  # of vLLM, whatever a collector put before it
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w/]{1,60}\.(?:py|rs):\d+\]\s*"
)


_COLLECTOR = re.compile(  # compose, journald, and vLLM's own name of the process
    r"(?:[\w.-]{1,60} +\| |\S{1,8} {1,2}\d{1,2} \d\d:\d\d:\d\d \S{1,60} [\w./-]{1,40}\[\d{1,9}\]: )"
    r"|(?!\w{0,60}(?:Error|Exception)\b)(?:.{0,80}? )??"
    r"(?=\((?:APIServer|EngineCore|Worker|VllmWorker)\w{0,40} pid=\d{1,9}\) )"
)


_BAR = re.compile(r"^[\w ()/:,.=-]{0,80}?\d{1,3}%\|[^|\n]{0,120}\|[^\[\n]{0,40}\[[^\]\n]{0,80}\] ?(?=\S)")


def message_of(text: str) -> str:
    """Returns a line without prefixes, a progress bar glued to it, and padding, at most 300 characters."""
    short = text[:1000].rstrip(" \t│┃║|")
    if "%|" in short and (bar := _BAR.match(short)):
        short = short[bar.end() :]
    match = _ANY_HEAD.search(short, 0, 300)
    if match is None:
        begin = outer.end() if (outer := _COLLECTOR.match(short)) else 0
        match = _PREFIX.match(short[begin:])
        short = short[begin:]
    body = short[match.end() :] if match else short
    return (body or short).strip()[:300]


@lru_cache(maxsize=64)
def _day(date: str) -> float:
    return seconds_of(f"{date}T00:00:00.0") or 0.0


_CLOCK = re.compile(r"(?:(\d{4})?-{0,2}(\d\d)-(\d\d))?T(\d\d):(\d\d):(\d\d(?:\.\d+)?)")


def seconds_of(t: str | None) -> float | None:
    """Returns a stamp in seconds, for differences only: a year is 372 days, a missing date is day 0."""
    if t is not None and t[-9:-8] == "T" and t[-6:-5] == ":":
        try:
            return _day(t[:-9]) + int(t[-8:-6]) * 3600 + int(t[-5:-3]) * 60 + int(t[-2:])
        except ValueError:
            return None
    match = _CLOCK.match(t) if t else None
    if match is None:
        return None
    year, month, day, hour, minute, second = match.groups()
    days = int(year or 0) * 372 + int(month or 0) * 31 + int(day or 0)
    return days * 86400.0 + int(hour) * 3600 + int(minute) * 60 + float(second)

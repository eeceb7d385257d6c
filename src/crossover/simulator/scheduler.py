"""Step-level scheduling of one engine as a discrete-event model: no clock, no sockets.

The server runs it step by step at the scaled clock; `timing` runs it as fast as it goes. Every step is planned when it
starts, and what it yields becomes visible `duration_s` later.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence as Items
from dataclasses import dataclass, field
from typing import Any

from crossover.simulator.acceptance import Acceptance
from crossover.simulator.prefix_cache import PrefixCache
from crossover.simulator.settings import Settings
from crossover.simulator.shape import Jit

# What SGLang sets aside for the output that running requests have still to make.
_NEW_TOKEN_RATIO = 0.5


class Sequence:
    """One request inside the engine. Lengths in tokens; fractional output only when the scheduler runs on means."""

    __slots__ = (
        "acceptance",
        "arrived_s",
        "cached",
        "cancelled",
        "computed",
        "generated",
        "handle",
        "natural",
        "number",
        "output",
        "preemptions",
        "prompt",
        "prompt_key",
        "target",
    )

    def __init__(
        self,
        number: int,
        prompt: int,
        output: int,
        natural: bool,
        prompt_key: str | Items[int] | None = None,
        handle: Any = None,
    ) -> None:
        self.number, self.prompt, self.output, self.natural = number, prompt, output, natural
        self.prompt_key, self.handle = prompt_key, handle
        self.acceptance: Acceptance | None = None
        self.computed = 0
        self.cached = 0
        self.generated: float = 0
        self.cancelled = False
        self.preemptions = 0
        self.arrived_s = 0.0
        # Tokens to compute before the next output: the prompt, and after a preemption what was generated too.
        self.target = prompt

    @property
    def held(self) -> float:
        """Tokens in the KV cache that are this request's own (its cached prefix is shared)."""
        return self.computed - self.cached + (self.generated if not self.preemptions else 0)


@dataclass
class Step:
    """What one step does. `outputs` is (sequence, new tokens, finished), seen at `start_s + duration_s`."""

    kind: str
    start_s: float
    duration_s: float = 0.0
    prefill: list[tuple[Sequence, int, int]] = field(default_factory=list)  # sequence, new, context before
    outputs: list[tuple[Sequence, float, bool]] = field(default_factory=list)
    started: list[Sequence] = field(default_factory=list)
    compiled: list[Jit] = field(default_factory=list)
    preempted: list[Sequence] = field(default_factory=list)
    oom_retries: int = 0
    drafted: int = 0
    accepted: float = 0
    decoding: int = 0
    repeats: int = 1

    @property
    def end_s(self) -> float:
        return self.start_s + self.duration_s


class Scheduler:
    """Runs sequences through steps.

    Args:
        settings: budgets, limits and coefficients.
        seed: makes the accepted tokens of each sequence the same again.
        on_means: every step yields the mean instead of a draw, and many equal decode steps are one `Step`.
    """

    def __init__(self, settings: Settings, seed: int = 0, on_means: bool = False) -> None:
        self.settings, self.seed, self.on_means = settings, seed, on_means
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self._capacity = settings.memory.kv_capacity_tokens
        self.cache = PrefixCache(settings.prefix_block_tokens, self._capacity, settings.prefix_caching)
        self.cold = list(settings.jit)
        self.oom_pending = settings.oom_retries
        self.delay_s = 0.0  # added to the next step: faults
        self.preemptions = 0

    def add(self, sequence: Sequence, now_s: float) -> None:
        """Queues a sequence that arrived at `now_s`."""
        mean = self.settings.acceptance_mean(sequence.prompt, sequence.natural)
        sequence.acceptance = Acceptance(mean, self.settings.draft_tokens, self.seed * 1_000_003 + sequence.number)
        sequence.arrived_s = now_s
        self.waiting.append(sequence)

    def cancel(self, sequence: Sequence) -> None:
        """Drops a sequence whose client has gone."""
        sequence.cancelled = True
        if sequence in self.running:
            self.running.remove(sequence)
        elif sequence in self.waiting:
            self.waiting.remove(sequence)

    @property
    def idle(self) -> bool:
        return not (self.running or self.waiting)

    def held_tokens(self) -> float:
        """Returns the tokens of the KV pool that running sequences hold."""
        return sum(sequence.held for sequence in self.running)

    def kv_usage(self) -> float:
        """Returns the share of the KV pool in use, 0..1."""
        return min(1.0, self.held_tokens() / max(1, self._capacity))

    def step(self, now_s: float, horizon_s: float = math.inf) -> Step | None:
        """Plans and applies the step that starts at `now_s`; None when there is nothing to do.

        Args:
            horizon_s: on means, do not repeat decode steps past this time (the next arrival).
        """
        plan = Step("decode", now_s)
        decoding, context = [], 0.0
        for sequence in self.running:
            context += sequence.prompt + sequence.generated
            if sequence.computed >= sequence.target:
                decoding.append(sequence)
        if self.settings.mixed:
            self._plan_prefill(
                plan, self.settings.prefill_budget_tokens - len(decoding) * (1 + self.settings.draft_tokens)
            )
        else:
            self._plan_prefill(plan, self.settings.prefill_budget_tokens)
            if plan.prefill:
                decoding = []
        if not plan.prefill and not decoding:
            return None
        # `context` bounds what the running sequences hold from above: mostly there is room, and nothing to count.
        if plan.prefill or context + len(decoding) * (1 + self.settings.draft_tokens) > self._capacity:
            self._make_room(plan, decoding)
        plan.kind = "prefill" if not decoding else "mixed" if plan.prefill else "decode"
        self._price(plan, decoding)
        if decoding:
            self._decode(plan, decoding, horizon_s)
        self._finish_prefill(plan)
        self._add_first_time_costs(plan)
        return plan

    def _plan_prefill(self, plan: Step, budget: int) -> None:
        limit = self.settings.chunk_limit_tokens or budget
        for sequence in self.running:
            if budget <= 0:
                return
            if sequence.computed < sequence.target:
                budget -= self._give(plan, sequence, min(budget, limit))
        while budget > 0 and self.waiting and len(self.running) < self.settings.max_running:
            sequence = self.waiting[0]
            if not self._fits(sequence):
                return
            self.waiting.popleft()
            self.running.append(sequence)
            plan.started.append(sequence)
            if sequence.prompt_key is not None and not sequence.preemptions:
                sequence.cached = self.cache.lookup(sequence.prompt_key, sequence.prompt)
                sequence.computed = sequence.cached
            budget -= self._give(plan, sequence, min(budget, limit))

    def _give(self, plan: Step, sequence: Sequence, most: int) -> int:
        tokens = min(most, sequence.target - sequence.computed)
        plan.prefill.append((sequence, tokens, sequence.computed))
        sequence.computed += tokens
        return tokens

    def _fits(self, sequence: Sequence) -> bool:
        if not self.running:
            return True
        need: float = sequence.target
        if self.settings.dialect == "sglang":
            need += _NEW_TOKEN_RATIO * sequence.output
            need += sum(_NEW_TOKEN_RATIO * (other.output - other.generated) for other in self.running)
        promised = sum(max(0, other.target - other.computed) for other in self.running)
        return self.held_tokens() + promised + need <= self._capacity

    def _make_room(self, plan: Step, decoding: list[Sequence]) -> None:
        """Takes the youngest sequences off the pool when the running ones outgrow it."""
        growth = len(decoding) * (1 + self.settings.draft_tokens)
        while len(self.running) > 1 and self.held_tokens() + growth > self._capacity:
            victim = self.running.pop()
            plan.prefill = [item for item in plan.prefill if item[0] is not victim]
            plan.started = [item for item in plan.started if item is not victim]
            if victim in decoding:
                decoding.remove(victim)
            victim.computed, victim.cached = 0, 0
            victim.preemptions += 1
            victim.target = victim.prompt + int(victim.generated)
            self.preemptions += 1
            self.waiting.appendleft(victim)
            plan.preempted.append(victim)

    def _price(self, plan: Step, decoding: list[Sequence]) -> None:
        cost = self.settings.cost
        plan.duration_s = sum(cost.prefill_s(new, context) for _, new, context in plan.prefill)
        if decoding:
            kv_tokens = sum([sequence.prompt + sequence.generated for sequence in decoding])
            share = cost.mixed_decode_share if plan.prefill else 1.0
            plan.duration_s += share * cost.decode_s(len(decoding), kv_tokens)
        plan.decoding = len(decoding)

    def _decode(self, plan: Step, decoding: list[Sequence], horizon_s: float) -> None:
        drafted = self.settings.draft_tokens
        if self.on_means:
            self._decode_on_means(plan, decoding, horizon_s)
            return
        plan.drafted = drafted * len(decoding)
        for sequence in decoding:
            assert sequence.acceptance is not None
            drawn = sequence.acceptance.draw() if drafted else 1
            tokens = min(drawn, sequence.output - int(sequence.generated))
            plan.accepted += drawn - 1
            self._emit(plan, sequence, tokens)

    def _decode_on_means(self, plan: Step, decoding: list[Sequence], horizon_s: float) -> None:
        """Repeats the step until a sequence ends, a waiting one could join, or `horizon_s`; durations add up "
        "as a series."""
        gains = [sequence.acceptance.mean if sequence.acceptance else 1.0 for sequence in decoding]
        repeats = 1
        if not plan.prefill:
            pairs = zip(decoding, gains, strict=True)
            repeats = max(1, min(math.ceil((sequence.output - sequence.generated) / gain) for sequence, gain in pairs))
            if plan.duration_s > 0 and horizon_s < math.inf:
                repeats = max(1, min(repeats, math.ceil((horizon_s - plan.start_s) / plan.duration_s)))
            slope = self.settings.cost.kv_s_per_token * sum(gains)
            plan.duration_s = repeats * plan.duration_s + slope * repeats * (repeats - 1) / 2
        plan.repeats = repeats
        for sequence, gain in zip(decoding, gains, strict=True):
            self._emit(plan, sequence, min(repeats * gain, sequence.output - sequence.generated))

    def _emit(self, plan: Step, sequence: Sequence, tokens: float) -> None:
        sequence.generated += tokens
        if sequence.preemptions:
            sequence.computed = sequence.target = sequence.prompt + int(sequence.generated)
        finished = sequence.generated >= sequence.output - 1e-9
        plan.outputs.append((sequence, tokens, finished))
        if finished:
            self.running.remove(sequence)

    def _finish_prefill(self, plan: Step) -> None:
        for sequence, _, _ in plan.prefill:
            if sequence.computed >= sequence.target:
                self._emit(plan, sequence, 1)

    def _add_first_time_costs(self, plan: Step) -> None:
        if self.cold:
            new = max((item[1] for item in plan.prefill), default=0)
            context = max((item[2] for item in plan.prefill), default=0)
            kv_tokens = sum(sequence.prompt for sequence, _, _ in plan.outputs)
            plan.compiled = [rule for rule in self.cold if _first_time(rule, plan, new, context, kv_tokens)]
            if plan.compiled:
                self.cold = [rule for rule in self.cold if rule not in plan.compiled]
                plan.duration_s += sum(rule.cost_s for rule in plan.compiled)
        if self.oom_pending and sum(new for _, new, _ in plan.prefill) >= 0.9 * self.settings.prefill_budget_tokens:
            plan.oom_retries, self.oom_pending = self.oom_pending, 0
            plan.duration_s += self.settings.oom_retry_cost_s
        plan.duration_s += self.delay_s
        self.delay_s = 0.0


def _first_time(rule: Jit, plan: Step, new: int, context: int, kv_tokens: float) -> bool:
    if rule.phase == "prefill":
        return bool(plan.prefill) and new >= rule.min_new_tokens and context >= rule.min_context_tokens
    return plan.decoding >= max(1, rule.min_running) and kv_tokens >= rule.min_kv_tokens

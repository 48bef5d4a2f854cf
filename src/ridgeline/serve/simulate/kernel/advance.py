"""Begin and end a step of one worker, compiled."""

import math
from typing import Any

from ridgeline.serve.simulate.engine.state import Costs, Memory, Records, State
from ridgeline.serve.simulate.kernel.blocks import release
from ridgeline.serve.simulate.kernel.cost import step_s
from ridgeline.serve.simulate.kernel.jit import jit
from ridgeline.serve.simulate.kernel.queue import add_event
from ridgeline.serve.simulate.kernel.schedule import decoding, plan

LOW_BITS = (1 << 32) - 1
RANGE = float(1 << 32)


@jit
def draw(state: State, request: int) -> float:
    """The next uniform number of a request, by xorshift (Marsaglia, Xorshift RNGs, 2003)."""
    value = state.requests[request].noise
    value ^= (value << 13) & LOW_BITS
    value ^= value >> 17
    value ^= (value << 5) & LOW_BITS
    state.requests[request].noise = value
    return float(value / RANGE)


@jit
def gather(state: State, worker: int) -> tuple[tuple[int, int, int], tuple[int, float], tuple[int, int, int]]:
    """The planned step: (tokens, sequences, samples), (prompt tokens, work), decodes (number, sum, longest context)."""
    tokens, sequences, samples = 0, 0, 0
    prompt, work = 0, 0.0
    decodes, context, longest = 0, 0, 0
    requests, running = state.requests, state.running[worker]
    for at in range(state.workers[worker].running):
        row = requests[running[at]]
        planned = row.planned
        if planned == 0:
            continue
        tokens += planned
        sequences += 1
        end = row.computed + planned
        if decoding(row):
            decodes += 1
            samples += planned
            context += end
            longest = max(longest, end)
        else:
            prompt += planned
            work += planned * (row.computed + planned / 2.0)
            if end == row.inputs + row.emitted:
                samples += 1
    return (tokens, sequences, samples), (prompt, work), (decodes, context, longest)


@jit
def begin(state: State, memory: Memory, costs: Costs, log: Records, now: tuple[int, float]) -> None:
    """Worker ``now[0]`` plans a step at ``now[1]`` and runs it, or sleeps until something comes."""
    worker, time_s = now
    w = state.workers[worker]
    c = state.config[0]
    swap_s = plan(state, memory, worker, time_s)
    counts, prompt, decodes = gather(state, worker)
    if counts[0] == 0:
        w.idle = 1
        return
    seconds = step_s(costs, counts, prompt, decodes) + swap_s
    if c.drafts > 0 and decodes[0] > 0:
        seconds += c.draft_step_s + c.draft_sequence_s * decodes[0]
    share_s, at_s = seconds / w.stages, time_s
    for stage in range(w.stages):
        at_s = max(at_s, state.stages[worker, stage]) + share_s
        state.stages[worker, stage] = at_s
    w.clock_s, w.out_s, w.stepping = state.stages[worker, 0], at_s, 1
    used = w.blocks - w.free
    w.steps += 1
    w.busy_s += share_s
    w.swap_s += swap_s
    w.sequence_s += counts[1] * share_s
    w.block_s += used * share_s
    w.prompt_tokens += prompt[0]
    w.decode_tokens += counts[0] - prompt[0]
    w.peak_blocks = max(w.peak_blocks, used)
    if len(log) > 0:
        row = log[state.progress[0].logged]
        state.progress[0].logged += 1
        row.start_s, row.seconds, row.tokens, row.worker = time_s, seconds, counts[0], worker
        row.prompt_tokens, row.decodes, row.waiting, row.blocks = prompt[0], decodes[0], w.waiting, used


@jit
def accept(state: State, request: int, drafts: int) -> int:
    """Tokens that a decode emits: the sampled one and the drafts accepted before the first rejection."""
    given = 1
    for position in range(drafts):
        if draw(state, request) >= state.acceptance[position]:
            break
        given += 1
    row = state.requests[request]
    return int(min(given, row.outputs - row.emitted))


@jit
def emit(row: Any, given: int, time_s: float) -> None:
    """A step that ended at ``time_s`` gave a request tokens."""
    if row.emitted == 0:
        row.first_s = time_s
    else:
        row.gap_s = max(row.gap_s, time_s - row.last_s)
    row.last_s = time_s
    row.emitted += given


@jit
def finish(state: State, request: int, time_s: float) -> None:
    """A request has its last token; in a closed loop its client thinks and sends the next one."""
    p = state.progress[0]
    state.requests[request].finished_s = time_s
    p.finished += 1
    if state.config[0].closed and p.arrived < len(state.requests):
        add_event(state, time_s + state.config[0].think_s, p.arrived)
        p.arrived += 1


@jit
def leave(state: State, memory: Memory, worker: int, request: int) -> None:
    """A finished request gives back what it holds."""
    release(state, memory, request)
    row = state.requests[request]
    state.workers[worker].load -= row.inputs + row.outputs


@jit
def end_of(state: State, memory: Memory, worker: int, request: int, time_s: float) -> bool:
    """Apply a step to one request; whether it stays on the worker."""
    c = state.config[0]
    row = state.requests[request]
    planned = row.planned
    row.planned = 0
    if planned == 0 or not math.isnan(row.finished_s):
        return True
    if decoding(row):
        given = accept(state, request, planned - 1)
        row.computed += given
        emit(row, given, time_s)
    else:
        row.computed += planned
        if row.computed < row.inputs + row.emitted:
            return True
        emit(row, 1, time_s)
    if row.emitted < row.outputs:
        if state.workers[worker].prefill:
            add_event(state, time_s + c.transfer_s + row.inputs * c.transfer_token_s, request)
            return False
        return True
    finish(state, request, time_s)
    if c.drain:
        return True
    leave(state, memory, worker, request)
    return False


@jit
def end(state: State, memory: Memory, worker: int) -> None:
    """The step of a worker is over: tokens come out, finished requests leave."""
    w = state.workers[worker]
    requests, running = state.requests, state.running[worker]
    w.stepping = 0
    kept, going = 0, 0
    for at in range(w.running):
        request = running[at]
        row = requests[request]
        if row.planned == 1 and row.emitted + 1 < row.outputs and decoding(row):
            row.planned = 0
            row.computed += 1
            emit(row, 1, w.out_s)
            running[kept] = request
            kept += 1
            going += 1
        elif end_of(state, memory, worker, request, w.out_s):
            running[kept] = request
            kept += 1
            if math.isnan(state.requests[request].finished_s):
                going += 1
    w.running = kept
    if state.config[0].drain and going == 0:
        for at in range(kept):
            leave(state, memory, worker, running[at])
        w.running = 0

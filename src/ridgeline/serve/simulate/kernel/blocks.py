"""Key-value blocks, compiled: taking, sharing, publishing and giving back.

A free block keeps its contents until it is taken: the list of free blocks is in the order in which they were given
back, and a prompt that asks for a block which lies in it takes it out again.
"""

from typing import Any

from ridgeline.serve.simulate.engine.state import Memory, Records, State
from ridgeline.serve.simulate.kernel.jit import jit


@jit
def blocks_for(tokens: int, block_size: int) -> int:
    """Blocks that hold so many tokens."""
    return (tokens + block_size - 1) // block_size


@jit
def unlink(blocks: Records, block: int) -> None:
    """Take a block out of the list of free ones."""
    before, after = blocks[block].before, blocks[block].after
    blocks[before].after = after
    blocks[after].before = before


@jit
def append(blocks: Records, block: int) -> None:
    """Put a block at the end of the list of free ones."""
    end = len(blocks) - 1
    last = blocks[end].before
    blocks[last].after = block
    blocks[block].before = last
    blocks[block].after = end
    blocks[end].before = block


@jit
def grow(state: State, memory: Memory, request: int, total: int) -> None:
    """Give a request blocks up to ``total``; the caller has made sure that they are free."""
    row = state.requests[request]
    worker = row.worker
    held = row.held
    if total <= held:
        return
    state.workers[worker].free -= total - held
    if state.config[0].prefix:
        blocks = memory.blocks[worker]
        end = len(blocks) - 1
        for j in range(held, total):
            block = blocks[end].after
            unlink(blocks, block)
            if blocks[block].hash >= 0:
                memory.where[worker, blocks[block].hash] = -1
                blocks[block].hash = -1
            blocks[block].users = 1
            memory.table[row.table_at + j] = block
    row.held = total


@jit
def release(state: State, memory: Memory, request: int) -> None:
    """Give back a request's blocks, its last one first."""
    row = state.requests[request]
    worker = row.worker
    if state.config[0].prefix:
        blocks = memory.blocks[worker]
        for j in range(row.held - 1, -1, -1):
            block = memory.table[row.table_at + j]
            blocks[block].users -= 1
            if blocks[block].users == 0:
                append(blocks, block)
                state.workers[worker].free += 1
    else:
        state.workers[worker].free += row.held
    row.held = 0
    row.published = 0


@jit
def hits(state: State, memory: Memory, request: int, worker: int) -> int:
    """Blocks of the prompt found on a worker; the last token is always computed."""
    row = state.requests[request]
    most = min(row.hashed, (row.inputs + row.emitted - 1) // state.config[0].block_size)
    for j in range(most):
        if memory.where[worker, memory.hashes[row.hashes_at + j]] < 0:
            return int(j)
    return int(most)


@jit
def unused_hits(state: State, memory: Memory, request: int, found: int) -> int:
    """How many of the found blocks nobody uses: they count as free until they are shared."""
    row = state.requests[request]
    unused = 0
    for j in range(found):
        block = memory.where[row.worker, memory.hashes[row.hashes_at + j]]
        if memory.blocks[row.worker, block].users == 0:
            unused += 1
    return unused


@jit
def share(state: State, memory: Memory, request: int, found: int) -> None:
    """Give a request the blocks that were found."""
    row = state.requests[request]
    blocks = memory.blocks[row.worker]
    for j in range(found):
        block = memory.where[row.worker, memory.hashes[row.hashes_at + j]]
        if blocks[block].users == 0:
            unlink(blocks, block)
            state.workers[row.worker].free -= 1
        blocks[block].users += 1
        memory.table[row.table_at + j] = block
    row.held = found
    row.published = found


@jit
def publish(state: State, memory: Memory, row: Any, tokens: int) -> None:
    """Let others find the prompt blocks that are full once ``tokens`` are computed."""
    full = min(tokens // state.config[0].block_size, row.hashed)
    for j in range(row.published, full):
        wanted = memory.hashes[row.hashes_at + j]
        if memory.where[row.worker, wanted] < 0:
            block = memory.table[row.table_at + j]
            memory.where[row.worker, wanted] = block
            memory.blocks[row.worker, block].hash = wanted
    row.published = max(row.published, full)


@jit
def retract(state: State, memory: Memory, row: Any) -> None:
    """Take back what was published for a step that the request, preempted, will not take part in."""
    for j in range(row.computed // state.config[0].block_size, row.published):
        block = memory.table[row.table_at + j]
        published = memory.blocks[row.worker, block].hash
        if published >= 0:
            memory.where[row.worker, published] = -1
            memory.blocks[row.worker, block].hash = -1
    row.published = min(row.published, row.computed // state.config[0].block_size)

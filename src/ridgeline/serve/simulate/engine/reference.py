"""The rules of the loop once more, in plain Python with objects: slow, and what the compiled loop must agree with.

`simulate` takes and returns what `loop.simulate` does, without totals over steps. Nothing here is compiled and nothing
is shared with the compiled loop but the descriptions of workload, engine and step table.
"""

import heapq
import math
from collections import OrderedDict, deque
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgeline.serve.simulate.costs.table import Shape, StepTable
from ridgeline.serve.simulate.engine.cache import block_hashes
from ridgeline.serve.simulate.engine.engine import Engine
from ridgeline.serve.simulate.engine.state import noise
from ridgeline.serve.simulate.traffic.workload import Workload


@dataclass(eq=False)
class Request:
    """One request: what it asks for, how far it is, and when things happened to it."""

    index: int
    inputs: int
    outputs: int
    rank: int
    noise: int
    hashes: list[int]
    computed: int = 0
    emitted: int = 0
    planned: int = 0
    swapped: bool = False
    blocks: list[int] = field(default_factory=list)
    worker: "Worker | None" = None
    arrival_s: float = math.nan
    scheduled_s: float = math.nan
    first_s: float = math.nan
    last_s: float = math.nan
    finished_s: float = math.nan
    gap_s: float = 0.0
    preemptions: int = 0
    hits: int = 0
    published: int = 0

    @property
    def known(self) -> int:
        """Tokens whose values exist: the prompt and what was sampled."""
        return self.inputs + self.emitted

    @property
    def decoding(self) -> bool:
        """Only the last sampled token is left to compute."""
        return self.emitted > 0 and self.computed + 1 >= self.known

    @property
    def size(self) -> int:
        """Tokens of prompt and answer: what it adds to a worker's load."""
        return self.inputs + self.outputs

    def draw(self) -> float:
        """The next uniform number (32-bit xorshift)."""
        for shift in (13, -17, 5):
            moved = self.noise << shift if shift > 0 else self.noise >> -shift
            self.noise = (self.noise ^ moved) % (1 << 32)
        return self.noise / (1 << 32)


class Blocks:
    """The key-value blocks of a worker. ``free`` is in the order in which they were given back."""

    def __init__(self, count: int, size: int) -> None:
        self.size = size
        self.free: OrderedDict[int, None] = OrderedDict.fromkeys(range(count))
        self.users = [0] * count
        self.holds: dict[int, int] = {}
        self.where: dict[int, int] = {}

    def need(self, tokens: int) -> int:
        """Blocks for so many tokens."""
        return math.ceil(tokens / self.size)

    def grow(self, request: Request, total: int) -> None:
        """Take the longest unused blocks; what they held is lost."""
        while len(request.blocks) < total:
            block, _ = self.free.popitem(last=False)
            if block in self.holds:
                del self.where[self.holds.pop(block)]
            self.users[block] = 1
            request.blocks.append(block)

    def release(self, request: Request) -> None:
        """Give back all blocks, the last one first."""
        while request.blocks:
            block = request.blocks.pop()
            self.users[block] -= 1
            if not self.users[block]:
                self.free[block] = None
        request.published = 0

    def found(self, request: Request) -> list[int]:
        """The blocks that hold the prompt's beginning; the last known token is never among them."""
        found: list[int] = []
        for key in request.hashes[: (request.known - 1) // self.size]:
            if key not in self.where:
                break
            found.append(self.where[key])
        return found

    def share(self, request: Request, found: list[int]) -> None:
        """Use blocks that were found."""
        for block in found:
            self.free.pop(block, None)
            self.users[block] += 1
        request.blocks, request.published = list(found), len(found)

    def publish(self, request: Request, tokens: int) -> None:
        """The full prompt blocks among the first ``tokens`` can be found from now on; a second copy is not."""
        full = min(tokens // self.size, len(request.hashes))
        for key, block in list(zip(request.hashes, request.blocks, strict=False))[request.published : full]:
            if key not in self.where:
                self.where[key], self.holds[block] = block, key
        request.published = max(request.published, full)

    def retract(self, request: Request) -> None:
        """What was published for a step that will not happen."""
        for block in request.blocks[request.computed // self.size : request.published]:
            if block in self.holds:
                del self.where[self.holds.pop(block)]


class Worker:
    """One replica, or one worker of a pool: its queue, its running requests and its memory."""

    def __init__(self, number: int, engine: Engine, table: StepTable, *, is_prefill: bool) -> None:
        self.number, self.engine, self.table, self.is_prefill = number, engine, table, is_prefill
        self.policy = engine.policy
        self.blocks = Blocks(engine.kv_blocks, engine.block_size)
        self.queues: dict[int, deque[Request]] = {}
        self.running: list[Request] = []
        self.load = 0
        self.clock_s = 0.0
        self.out_s = 0.0
        self.asleep = True
        self.stepping = False
        stages = engine.pools.prefill_stages if engine.pools and is_prefill else 1
        self.stages = [0.0] * stages

    def wake(self, time_s: float) -> None:
        """Look again, if asleep."""
        if self.asleep:
            self.asleep, self.clock_s = False, max(self.clock_s, time_s)

    def enqueue(self, request: Request) -> None:
        """Join the end of the queue of its rank."""
        self.queues.setdefault(request.rank, deque()).append(request)

    def head(self) -> Request | None:
        """The first of the most urgent queue."""
        return next((self.queues[rank][0] for rank in sorted(self.queues) if self.queues[rank]), None)

    def preempt(self, request: Request) -> float:
        """Send a running request back to the head of its queue; seconds of swapping."""
        self.running.remove(request)
        if request.planned:
            self.blocks.retract(request)
        self.blocks.release(request)
        request.planned = 0
        request.preemptions += 1
        self.queues.setdefault(request.rank, deque()).appendleft(request)
        if self.engine.preemption == "swap":
            request.swapped = True
            return request.computed * (self.engine.kv_bytes_per_token / self.engine.swap_bytes_per_s)
        request.computed = 0
        return 0.0

    def victim(self) -> Request:
        """Who gives way."""
        if self.engine.by_priority:
            return max(self.running, key=lambda r: (r.rank, r.index))
        return self.running[-1]

    def plan(self, time_s: float) -> float:
        """Plan a step into ``planned`` of the running requests; seconds of swapping."""
        was_empty = not self.running
        budget = self.engine.max_num_batched_tokens
        budget, preempted, swap_s = self.plan_running(budget, prompts=True, decodes=self.policy.mixed)
        if not preempted and (was_empty or not self.policy.drain):
            budget, seconds = self.admit(budget, time_s)
            swap_s += seconds
        if not self.policy.mixed and budget == self.engine.max_num_batched_tokens:
            _, _, seconds = self.plan_running(budget, prompts=False, decodes=True)
            swap_s += seconds
        return swap_s

    def plan_running(self, budget: int, *, prompts: bool, decodes: bool) -> tuple[int, bool, float]:
        """Tokens for running requests in order of admission; those without room push out the victims."""
        preempted, swap_s = False, 0.0
        for request in list(self.running):
            if budget <= 0:
                break
            if request not in self.running or not (decodes if request.decoding else prompts):
                continue
            want = self.engine.drafted if request.decoding else request.known - request.computed
            tokens = min(want, budget)
            total = self.blocks.need(request.computed + tokens) if math.isnan(request.finished_s) else 0
            while request in self.running and total - len(request.blocks) > len(self.blocks.free):
                out = self.victim()
                budget += out.planned
                swap_s += self.preempt(out)
                preempted = True
            if request in self.running:
                self.blocks.grow(request, total)
                request.planned = tokens
                budget -= tokens
                self.blocks.publish(request, request.computed + tokens)
        return budget, preempted, swap_s

    def admit(self, budget: int, time_s: float) -> tuple[int, float]:
        """Waiting requests join until one does not fit."""
        swap_s = 0.0
        while budget > 0 and len(self.running) < self.engine.max_num_seqs:
            request = self.head()
            if request is None or not self.fits(request, budget):
                break
            self.queues[request.rank].popleft()
            self.running.append(request)
            budget -= request.planned
            if request.swapped:
                request.swapped = False
                swap_s += request.computed * (self.engine.kv_bytes_per_token / self.engine.swap_bytes_per_s)
            if math.isnan(request.scheduled_s):
                request.scheduled_s, request.hits = time_s, request.computed
        return budget, swap_s

    def fits(self, request: Request, budget: int) -> bool:
        """Give a waiting request its tokens and blocks if both are there."""
        found = self.blocks.found(request) if request.computed == 0 else []
        done = request.computed or len(found) * self.blocks.size
        if request.computed and request.decoding:
            tokens = min(self.engine.drafted, budget) if self.policy.mixed else 0
        else:
            tokens = request.known - done
            if tokens > budget and not self.policy.chunked:
                return False
            tokens = min(tokens, budget)
        total = self.blocks.need(done + tokens)
        if self.policy.reserve:
            total = max(total, self.blocks.need(request.size - 1 + self.engine.drafted - 1))
        free = len(self.blocks.free) - sum(1 for block in found if block in self.blocks.free)
        least = max(total, self.blocks.need(request.known)) if self.engine.whole_prompt else total
        if least - len(found) > free:
            return False
        self.blocks.share(request, found)
        self.blocks.grow(request, total)
        request.computed, request.planned = done, tokens
        self.blocks.publish(request, done + tokens)
        return True

    def shape(self) -> Shape:
        """The planned step as the table sees it."""
        parts = [r for r in self.running if r.planned]
        prompts = [r for r in parts if not r.decoding]
        contexts = [r.computed + r.planned for r in parts if r.decoding]
        sampled = sum(r.computed + r.planned == r.known for r in prompts)
        return Shape(
            tokens=sum(r.planned for r in parts),
            sequences=len(parts),
            samples=sampled + sum(r.planned for r in parts if r.decoding),
            prompt_tokens=sum(r.planned for r in prompts),
            prompt_work=sum(r.planned * (r.computed + r.planned / 2) for r in prompts),
            decodes=len(contexts),
            decode_sum=sum(contexts),
            decode_max=max(contexts, default=0),
        )

    def begin(self, time_s: float) -> None:
        """Plan a step and run it, or fall asleep."""
        swap_s = self.plan(time_s)
        shape = self.shape()
        if not shape.tokens:
            self.asleep = True
            return
        seconds = self.table.seconds(shape) + swap_s
        draft = self.engine.speculation
        if draft and shape.decodes:
            seconds += draft.tokens * draft.draft_step_s + draft.tokens * draft.draft_sequence_s * shape.decodes
        share_s = seconds / len(self.stages)
        for stage, free_s in enumerate(self.stages):
            time_s = max(time_s, free_s) + share_s
            self.stages[stage] = time_s
        self.clock_s, self.out_s, self.stepping = self.stages[0], time_s, True


class Simulation:
    """Workers, the requests that have not arrived, and the events to come."""

    def __init__(self, workload: Workload, table: StepTable, engine: Engine, seed: int) -> None:
        self.engine, self.workload = engine, workload
        pools = engine.pools
        prefill = pools.prefill if pools else 0
        self.workers = [Worker(i, engine, table, is_prefill=i < prefill) for i in range(engine.workers)]
        self.first = self.workers[:prefill] if pools else self.workers
        self.second = self.workers[prefill:]
        self.turns = {id(self.first): 0, id(self.second): 0}
        self.requests = _requests(workload, engine, seed)
        self.coming = deque(self.requests)
        self.events: list[tuple[float, int]] = []
        self.left = len(self.requests)
        if workload.closed:
            for _ in range(min(workload.concurrency, len(self.requests))):
                self.events.append((0.0, self.coming.popleft().index))

    def run(self) -> list[Request]:
        """Everything in order of time: arrivals and transfers, then ends and beginnings of steps."""
        while self.left:
            awake = [w for w in self.workers if not w.asleep]
            worker = min(awake, key=lambda w: w.clock_s) if awake else None
            ready_s = worker.clock_s if worker else math.inf
            arrival_s = math.inf
            if self.coming and not self.workload.closed:
                arrival_s = float(self.workload.arrival_s[self.coming[0].index])
            event_s = self.events[0][0] if self.events else math.inf
            if arrival_s < math.inf and arrival_s <= min(ready_s, event_s):
                self.send(self.coming.popleft(), arrival_s)
            elif event_s < math.inf and event_s <= ready_s:
                self.send(self.requests[heapq.heappop(self.events)[1]], event_s)
            else:
                assert worker is not None, "requests are left and nothing can happen"
                self.end(worker) if worker.stepping else worker.begin(ready_s)
        return self.requests

    def send(self, request: Request, time_s: float) -> None:
        """A request, or its cache after prefill, goes to the worker that the router picks."""
        pool = self.first
        if request.worker is not None:
            pool = self.second
            request.worker.blocks.release(request)
            request.worker.load -= request.size
            request.worker.wake(time_s)
        else:
            request.arrival_s = time_s
        worker = self.route(request, pool)
        request.worker = worker
        worker.load += request.size
        worker.enqueue(request)
        worker.wake(time_s)

    def route(self, request: Request, pool: list[Worker]) -> Worker:
        """Which worker of the pool."""
        routing = self.engine.routing
        if len(pool) == 1:
            return pool[0]
        if routing == "round-robin":
            self.turns[id(pool)] += 1
            return pool[(self.turns[id(pool)] - 1) % len(pool)]
        if routing == "random":
            return pool[int(request.draw() * len(pool))]

        def score(worker: Worker) -> int:
            if routing == "least-loaded" or request.computed:
                return worker.load
            return worker.load + request.inputs - len(worker.blocks.found(request)) * worker.blocks.size

        return min(pool, key=score)

    def end(self, worker: Worker) -> None:
        """The step is over: tokens come out."""
        worker.stepping = False
        kept = [request for request in worker.running if self.stays(worker, request)]
        worker.running = kept
        if worker.policy.drain and all(not math.isnan(r.finished_s) for r in kept):
            for request in kept:
                self.leave(worker, request)
            worker.running = []

    def stays(self, worker: Worker, request: Request) -> bool:
        """Apply the step to one request."""
        planned, request.planned = request.planned, 0
        if not planned or not math.isnan(request.finished_s):
            return True
        given = 1
        if request.decoding:
            while given < planned and request.draw() < self.acceptance(given - 1):
                given += 1
            given = min(given, request.outputs - request.emitted)
            request.computed += given
        else:
            request.computed += planned
            if request.computed < request.known:
                return True
        if request.emitted == 0:
            request.first_s = worker.out_s
        else:
            request.gap_s = max(request.gap_s, worker.out_s - request.last_s)
        request.last_s = worker.out_s
        request.emitted += given
        if request.emitted < request.outputs:
            if worker.is_prefill:
                heapq.heappush(self.events, (self.arrives_s(worker, request), request.index))
            return not worker.is_prefill
        self.finish(request, worker.out_s)
        if worker.policy.drain:
            return True
        self.leave(worker, request)
        return False

    def acceptance(self, position: int) -> float:
        """Probability that the draft at a position is accepted."""
        assert self.engine.speculation is not None
        return self.engine.speculation.acceptance[position]

    def arrives_s(self, worker: Worker, request: Request) -> float:
        """When the cache of a prompt reaches the decode worker."""
        pools = self.engine.pools
        assert pools is not None
        token_s = self.engine.kv_bytes_per_token / pools.bandwidth_bytes_per_s
        return worker.out_s + pools.latency_s + request.inputs * token_s

    def finish(self, request: Request, time_s: float) -> None:
        """The last token is out; in a closed loop the client thinks and sends the next one."""
        request.finished_s = time_s
        self.left -= 1
        if self.workload.closed and self.coming:
            heapq.heappush(self.events, (time_s + self.workload.think_s, self.coming.popleft().index))

    def leave(self, worker: Worker, request: Request) -> None:
        """A finished request gives back what it holds."""
        worker.blocks.release(request)
        worker.load -= request.size


def _requests(workload: Workload, engine: Engine, seed: int) -> list[Request]:
    hashes: list[list[int]] = [[] for _ in range(len(workload))]
    if engine.prefix_cache and workload.has_hashes:
        flat, offsets = block_hashes(workload, engine.block_size)
        hashes = [flat[offsets[i] : offsets[i + 1]].tolist() for i in range(len(workload))]
    ranks = {priority: rank for rank, priority in enumerate(sorted(set(workload.priority.tolist())))}
    starts = noise(len(workload), seed).tolist()
    rows = zip(workload.input_tokens.tolist(), workload.output_tokens.tolist(), workload.priority.tolist(), strict=True)
    return [
        Request(i, inputs, outputs, ranks[priority] if engine.by_priority else 0, starts[i], hashes[i])
        for i, (inputs, outputs, priority) in enumerate(rows)
    ]


@dataclass(frozen=True, eq=False)
class Times:
    """Per request, (n,): what `result.Result` has under the same names."""

    arrival_s: NDArray[Any]
    scheduled_s: NDArray[Any]
    first_token_s: NDArray[Any]
    finished_s: NDArray[Any]
    longest_gap_s: NDArray[Any]
    emitted: NDArray[Any]
    preemptions: NDArray[Any]
    hit_tokens: NDArray[Any]
    worker: NDArray[Any]
    free_blocks: NDArray[Any]


def simulate(workload: Workload, table: StepTable, engine: Engine, seed: int = 0) -> Times:
    """Times of every request; all of them must be admissible (`loop.admissible`)."""
    simulation = Simulation(workload, table, engine, seed)
    done = simulation.run()
    names = {"first_token_s": "first_s", "longest_gap_s": "gap_s", "hit_tokens": "hits"}
    own = [f.name for f in fields(Times) if f.name not in ("worker", "free_blocks")]
    return Times(
        **{name: np.array([getattr(r, names.get(name, name)) for r in done]) for name in own},
        worker=np.array([r.worker.number if r.worker else -1 for r in done]),
        free_blocks=np.array([len(w.blocks.free) for w in simulation.workers]),
    )

"""Queues of waiting requests and the heap of coming events, compiled."""

from ridgeline.serve.simulate.engine.state import Records, State
from ridgeline.serve.simulate.kernel.jit import jit


@jit
def push_back(state: State, worker: int, request: int) -> None:
    """A request joins the end of the queue of its rank."""
    queue = state.queues[worker, state.requests[request].rank]
    state.requests[request].next = -1
    if queue[0] < 0:
        queue[0] = request
    else:
        state.requests[queue[1]].next = request
    queue[1] = request
    state.workers[worker].waiting += 1


@jit
def push_front(state: State, worker: int, request: int) -> None:
    """A preempted request goes to the head of the queue of its rank."""
    queue = state.queues[worker, state.requests[request].rank]
    state.requests[request].next = queue[0]
    if queue[0] < 0:
        queue[1] = request
    queue[0] = request
    state.workers[worker].waiting += 1


@jit
def first(state: State, worker: int) -> int:
    """The head of the most urgent queue that has one, or -1."""
    if state.workers[worker].waiting == 0:
        return -1
    queues = state.queues[worker]
    for rank in range(len(queues)):
        if queues[rank, 0] >= 0:
            return int(queues[rank, 0])
    return -1


@jit
def pop(state: State, worker: int, request: int) -> None:
    """The head of its queue leaves it."""
    queue = state.queues[worker, state.requests[request].rank]
    queue[0] = state.requests[request].next
    state.workers[worker].waiting -= 1


@jit
def sooner(events: Records, a: int, b: int) -> bool:
    """Whether event ``a`` comes before ``b``: by time, then by request."""
    if events[a].time_s != events[b].time_s:
        return bool(events[a].time_s < events[b].time_s)
    return bool(events[a].request < events[b].request)


@jit
def swap(events: Records, a: int, b: int) -> None:
    """Two events change places."""
    time_s, request = events[a].time_s, events[a].request
    events[a].time_s, events[a].request = events[b].time_s, events[b].request
    events[b].time_s, events[b].request = time_s, request


@jit
def add_event(state: State, time_s: float, request: int) -> None:
    """A request arrives, or its cache does, at ``time_s``."""
    events = state.events
    at = state.progress[0].events
    state.progress[0].events = at + 1
    events[at].time_s = time_s
    events[at].request = request
    while at > 0 and sooner(events, at, (at - 1) >> 1):
        swap(events, at, (at - 1) >> 1)
        at = (at - 1) >> 1


@jit
def next_event(state: State) -> int:
    """The request of the soonest event, which leaves the heap."""
    events = state.events
    request = events[0].request
    last = state.progress[0].events - 1
    state.progress[0].events = last
    swap(events, 0, last)
    at = 0
    while 2 * at + 1 < last:
        child = 2 * at + 1
        if child + 1 < last and sooner(events, child + 1, child):
            child += 1
        if not sooner(events, child, at):
            break
        swap(events, child, at)
        at = child
    return int(request)

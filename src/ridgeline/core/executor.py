"""One ``map`` for work that is worth spreading: a local process pool, or Ray when an address is given."""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

from ridgeline.core.errors import InputError, MissingExtraError

T = TypeVar("T")
R = TypeVar("R")


def pmap(work: Callable[[T], R], items: Iterable[T], *, workers: int | None = None, address: str = "") -> list[R]:
    """Apply ``work`` to each item, results in the order of the items; the first exception is raised.

    ``workers`` 1 runs in this process; None uses every processor. ``address`` names a Ray cluster
    (``"auto"``, ``"local"`` or ``"ray://host:port"``), which needs the ``cluster`` extra.
    """
    todo: Sequence[T] = list(items)
    if address:
        return _on_ray(work, todo, address)
    count = min(workers or os.cpu_count() or 1, max(len(todo), 1))
    if count == 1:
        return [work(item) for item in todo]
    # spawn, not fork: the parent may hold threads (polars, BLAS) that a fork would deadlock
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        return list(pool.map(work, todo, chunksize=max(1, len(todo) // (4 * count))))


def _on_ray(work: Callable[[T], R], todo: Sequence[T], address: str) -> list[R]:
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("ray", "cluster") from error
    started = not ray.is_initialized()
    if started:
        try:
            ray.init(address=address, ignore_reinit_error=True, log_to_driver=False, include_dashboard=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise InputError.expected("a Ray cluster that answers", str(error), where=address) from error
    try:
        remote: Any = ray.remote(_call)  # not `work` itself, which may be a partial
        shared = ray.put(work)
        results: list[R] = ray.get([remote.remote(shared, item) for item in todo])
        return results
    finally:
        if started:
            ray.shutdown()


def _call(work: Callable[[T], R], item: T) -> R:
    return work(item)

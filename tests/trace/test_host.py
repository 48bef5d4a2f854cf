"""What host ranges mean."""

import numpy as np
import pytest
from tests.trace.synthetic import Table

from ridgeline.trace.events import Category
from ridgeline.trace.host import host_kinds


@pytest.mark.parametrize(
    ("name", "category", "kind"),
    [
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", Category.ANNOTATION, "input"),
        ("torch/utils/data/dataloader.py(708): __next__", Category.PYTHON, "input"),
        ("## wait_for_batch ##", Category.ANNOTATION, "input"),
        ("pretrain_gpt.py(33): get_batch", Category.PYTHON, "input"),
        ("aten::batch_norm", Category.HOST_OP, ""),
        ("get_batch", Category.KERNEL, ""),
        ("gc.collect", Category.PYTHON, "garbage"),
        ("<built-in function collect>", Category.PYTHON, "garbage"),
        ("collections/__init__.py(1137): __setitem__", Category.PYTHON, ""),
        ("hipStreamSynchronize", Category.RUNTIME, "sync"),
        ("cudaMemcpy", Category.RUNTIME, "sync"),
        ("cudaMemcpyAsync", Category.RUNTIME, ""),
        ("cudaStreamWaitEvent", Category.RUNTIME, ""),
    ],
)
def test_names(name: str, category: Category, kind: str) -> None:
    table = Table()
    table.add(name, 0, 10, category, thread=1)
    events = table.build()
    found = [key for key, item in host_kinds().items() if len(item.rows(events))]
    assert found == ([kind] if kind else [])


def test_spans_of_some_threads() -> None:
    table = Table()
    table.host("cudaDeviceSynchronize", 0, 10, Category.RUNTIME, thread=1)
    table.host("cudaDeviceSynchronize", 100, 10, Category.RUNTIME, thread=2)
    sync = host_kinds()["sync"]
    assert sync.spans(table.build()).total == 20
    assert sync.spans(table.build(), np.array([2])).extent == (100, 110)

"""Mooncake: JSON Lines with timestamp (ms), input_length, output_length, and hash_ids of 512-token blocks."""

from ridgeline.serve.simulate.traffic.tabular import Names, in_ms, jsonl_reader

NAMES = Names(("input_length",), ("output_length",), {"timestamp": in_ms}, ("hash_ids",))
READER = jsonl_reader("Mooncake", NAMES)

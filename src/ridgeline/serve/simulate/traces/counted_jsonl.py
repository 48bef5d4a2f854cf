"""JSON Lines with token counts: counted ShareGPT-like sets, request logs of vLLM and SGLang, OpenAI usage keys.

A time is ``arrival_s`` or ``arrival_time`` in seconds, or ``arrival_time_ns``; without one it is a file of lengths.
"""

from ridgeline.serve.simulate.traffic.tabular import Names, in_ns, jsonl_reader, number

NAMES = Names(
    ("input_tokens", "prompt_tokens", "input_len", "prompt_len", "input_toks", "num_prompt_tokens"),
    ("output_tokens", "completion_tokens", "output_len", "output_toks", "num_generation_tokens"),
    {"arrival_s": number, "arrival_time": number, "arrival_time_ns": in_ns},
    ("hash_ids",),
)
READER = jsonl_reader("JSON Lines", NAMES)

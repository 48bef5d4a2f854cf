"""One or more small records of every schema."""

from typing import Any

_TOOL = {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}

SAMPLES: dict[str, list[dict[str, Any]]] = {
    "OpenAI chat": [
        {
            "timestamp": "2026-11-02T08:00:00Z",
            "model": "m",
            "tools": [_TOOL],
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
                {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "type": "function"}]},
                {"role": "tool", "content": '{"b": 1, "a": 2}', "tool_call_id": "call_1"},
            ],
            "usage": {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 64}},
        },
        {
            "custom_id": "r1",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {"model": "m", "messages": [{"role": "user", "content": "Hi"}]},
            "response": {"status_code": 200, "body": {"usage": {"prompt_tokens": 9}, "created": 1790000000}},
        },
    ],
    "OpenAI responses": [
        {
            "created_at": 1790000000,
            "request": {"model": "m", "instructions": "Be brief.", "tools": [_TOOL],
                        "input": [{"role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
                                  {"type": "function_call", "name": "find", "arguments": "{}"},
                                  {"type": "function_call_output", "call_id": "c", "output": "none"}]},
            "response": {"usage": {"input_tokens": 50, "input_tokens_details": {"cached_tokens": 0}}},
        },
        {"model": "m", "input": "Hello"},
    ],
    "Anthropic messages": [
        {
            "time": 1790000000.5,
            "request": {
                "model": "c",
                "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
                "tools": [{"name": "find", "input_schema": {"type": "object"}}],
                "messages": [
                    {"role": "user", "content": "Hello"},
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "find", "input": {}}]},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "none"}]},
                ],
            },
            "response": {"usage": {"input_tokens": 10, "cache_read_input_tokens": 90}},
        }
    ],
    "vLLM": [
        {"request_id": "cmpl-1", "prompt": "Hello there", "sampling_params": {"max_tokens": 4}, "arrival_time": 2.5},
        {"request_id": "cmpl-2", "prompt_token_ids": [1, 2, 3, 4], "num_cached_tokens": 2},
        {"input_tok_ids": [5, 6, 7], "arrival_s": 0.5},
    ],
    "Mooncake": [
        {"timestamp": 27482, "input_length": 1100, "output_length": 4, "hash_ids": [46, 47, 2353]},
        {"arrival_s": 1.5, "input_tokens": 512, "hash_ids": [46]},
    ],
    "plain prompt": [{"prompt": "Tell me a story."}, {"model": "m", "prompt": "Again.", "usage": {"prompt_tokens": 3}}],
}  # fmt: skip

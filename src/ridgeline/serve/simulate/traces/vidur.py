"""Vidur: num_prefill_tokens, num_decode_tokens, and arrived_at in seconds where the file has times."""

from ridgeline.serve.simulate.traffic.tabular import Names, csv_reader, number

READER = csv_reader("Vidur", Names(("num_prefill_tokens",), ("num_decode_tokens",), {"arrived_at": number}))

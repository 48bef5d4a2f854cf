"""CSV with arrival_s, input_tokens, output_tokens, and hash_ids where prompts share blocks. The times may be absent."""

from ridgeline.serve.simulate.traffic.tabular import Names, csv_reader, number

NAMES = Names(("input_tokens",), ("output_tokens",), {"arrival_s": number}, ("hash_ids",))
READER = csv_reader("CSV", NAMES)

"""Traces of the Splitwise simulator: arrival_timestamp in seconds, prompt_size, token_size."""

from ridgeline.serve.simulate.traffic.tabular import Names, csv_reader, number

READER = csv_reader("Splitwise", Names(("prompt_size",), ("token_size",), {"arrival_timestamp": number}))

"""BurstGPT: Timestamp in seconds, Request tokens, Response tokens."""

from ridgeline.serve.simulate.traffic.tabular import Names, csv_reader, number

READER = csv_reader("BurstGPT", Names(("request tokens",), ("response tokens",), {"timestamp": number}))

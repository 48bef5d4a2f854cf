"""The Azure LLM inference traces of 2023 and 2024: TIMESTAMP (a date), ContextTokens, GeneratedTokens."""

from ridgeline.serve.simulate.traffic.tabular import Names, clock, csv_reader

READER = csv_reader("Azure LLM trace", Names(("contexttokens",), ("generatedtokens",), {"timestamp": clock}))

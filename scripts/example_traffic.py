"""The traffic of ``examples/flagship``: ``python scripts/example_traffic.py`` writes it, the same each time.

An agent's requests, drawn and not recorded: bursts, prompts of about 2k tokens with a long tail, short answers.
"""

import csv
from pathlib import Path

from ridgeline.serve.simulate.traffic.traffic import Burst, Length, Traffic, make

FILE = Path(__file__).resolve().parents[1] / "examples" / "flagship" / "traffic.csv"
TRAFFIC = Traffic(
    rate=6.0,
    requests=1500,
    arrivals="bursts",
    burst=Burst(ratio=4, on=20, off=60),
    input=Length(p50=2000, p99=12_000, most=16_000),
    output=Length(p50=128, p99=700, most=2048),
    seed=20,
)


def rows() -> list[tuple[str, int, int]]:
    """Arrival in seconds, prompt and answer in tokens."""
    load = make(TRAFFIC).workload
    columns = (load.arrival_s.tolist(), load.input_tokens.tolist(), load.output_tokens.tolist())
    return [(f"{time:.3f}", given, answer) for time, given, answer in zip(*columns, strict=True)]


def main() -> None:
    """Write the file."""
    with FILE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["arrival_s", "input_tokens", "output_tokens"])
        writer.writerows(rows())


if __name__ == "__main__":
    main()

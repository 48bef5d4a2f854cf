"""One file per gate: what ``examples/gates/<name>`` holds, drawn from a seed and not recorded."""

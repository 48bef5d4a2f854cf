"""The child process: compiles the twins of stdin on virtual CPU devices and writes what the compiler made of them.

Started as ``python -m ridgeline.plan.verify.child`` with the device count in ``XLA_FLAGS``, so that the process that
asks never loads JAX. Nothing runs: arguments are shapes, and the step is lowered and compiled.
"""

import json
import sys
from typing import Any

from ridgeline.plan.verify.twin import Twin


def main() -> None:
    """Read a JSON list of twins, write a JSON list of compiled programs in their order."""
    from ridgeline.plan.verify import program

    found = [_compiled(program.lowered(Twin.load(item))) for item in json.load(sys.stdin)]
    json.dump(found, sys.stdout)


def _compiled(lowered: Any) -> dict[str, Any]:
    compiled = lowered.compile()
    memory, cost = compiled.memory_analysis(), compiled.cost_analysis()
    cost = cost[0] if isinstance(cost, list) else cost
    sizes = {
        "arguments": memory.argument_size_in_bytes,
        "outputs": memory.output_size_in_bytes,
        "aliased": memory.alias_size_in_bytes,
        "temporary": memory.temp_size_in_bytes,
    }
    return {"hlo": compiled.as_text(), "memory": sizes, "cost_flops": float((cost or {}).get("flops", 0.0))}


if __name__ == "__main__":
    main()

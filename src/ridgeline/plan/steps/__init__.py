"""One training step under a parallel plan: its kernels and wires, its time, its memory, and how sure that is."""

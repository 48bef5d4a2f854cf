"""One launch gate per file; found by walking this folder."""

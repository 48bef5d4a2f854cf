"""One planning rule per file; found by walking this folder."""

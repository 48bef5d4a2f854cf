"""One trace rule per file; found by walking this folder."""

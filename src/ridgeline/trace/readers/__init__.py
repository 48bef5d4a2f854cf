"""One trace or log format per file; found by walking this folder and chosen by content."""

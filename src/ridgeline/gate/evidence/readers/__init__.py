"""One evaluation log format per file; found by walking this folder."""

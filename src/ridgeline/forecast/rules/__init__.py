"""One rule about ladders, fits and forecasts per file; found by walking this folder."""

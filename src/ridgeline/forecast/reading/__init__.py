"""From a file of runs to `Points`: tables, headers, cells, and what is wrong with a row."""

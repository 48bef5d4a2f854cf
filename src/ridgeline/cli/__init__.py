"""The command line: `main`, and one thin file per command (parse, call one function, hand over)."""

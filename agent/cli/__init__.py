"""The command line: parse, call one function, print, choose the exit code."""

"""The command line: parse options, call one function, print its result, choose the exit code."""

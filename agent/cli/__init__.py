"""The command line: parse options, call one function, print its result, choose the exit code.

No logic that another caller could need belongs here, and nothing else imports this package.
"""

"""The page that `scan` prints, one module per section, as lines of styled text.

Terminals and colours do not belong here but to `outputs/terminal.py`, HTML to `outputs/html`.
"""

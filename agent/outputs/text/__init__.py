"""The page that `scan` prints, one module per section, as lines of styled text.

Terminals and colours belong to `outputs/terminal.py`, HTML to `outputs/html`.
"""

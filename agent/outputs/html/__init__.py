"""The report as one self-contained HTML page, and the machine as an SVG picture, both from the report alone.

The fleet's page is not here but in `agent/fleet`; texts shared with the terminal page to `outputs/text`.
"""

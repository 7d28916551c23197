"""Facts that a text states from two sides: both ends of a link, what is set or planned beside what is there.

`read` finds the facts, `agree` states which of them must agree and compares them. Not here: two outputs about one part
of one host (`agent/contradictions/values.py`), and parts of one kind among each other (`probes/tool_reports/tables`).
"""

"""A report in other forms: the text page, the HTML page, exports, monitoring answers.

Pure functions of a report: nothing here reads a host, evaluates a rule or changes the report.
"""

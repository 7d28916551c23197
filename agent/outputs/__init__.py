"""A report in other forms: pure functions, one file a form."""

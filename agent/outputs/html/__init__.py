"""The report as one page that opens anywhere, and the machine as a picture: both drawn from the report alone."""

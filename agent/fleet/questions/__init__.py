"""What a fleet is asked, a file a question: Ibis expressions over the tables, and the answer as plain data."""

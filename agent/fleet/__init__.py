"""Many reports: the dataset, its tables, and the questions to them. It reads reports and fabric files, never a host."""

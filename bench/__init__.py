"""What it costs, side by side with what a user would run instead."""

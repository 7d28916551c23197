"""What earlier runs leave behind: counters to compare with, the inventory, settings. Pure but for the file itself."""

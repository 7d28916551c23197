"""Many reports: what is odd, what drifted, how the cluster hangs together. Never a host."""

"""What every family shares: blocks of data, the engine that visits them, the loop that repeats."""

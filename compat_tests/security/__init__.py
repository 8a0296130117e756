"""Who is let in, and what they may do, as stock clients see it and byte by byte, on both brokers."""

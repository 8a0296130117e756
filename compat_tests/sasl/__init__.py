"""Who is let in, with which words others are refused: on both brokers, from bytes and from stock clients."""

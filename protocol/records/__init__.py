"""Record batches: what producers send, logs keep and consumers get. `batch` is the place to start."""

"""One segment: its batches, indexes, verification; and what is decided for a segment at a time, such as retention."""

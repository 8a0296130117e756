"""Log compaction: which logs need it, which records stay, how a segment is replaced."""

"""One partition's log: `Log`, its segments, truncation, recovery, reads, searches by time."""

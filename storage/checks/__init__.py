"""What is wrong with files that a broker left: read-only, over the `Disk` seam, and never a traceback for damage."""

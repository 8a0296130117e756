"""Checks of the files that a broker left, and their repair, over the `Disk` seam.

A check only reads, and no damage makes it raise. `repair` and `segment_salvage` are the two modules that write.
"""

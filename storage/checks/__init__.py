"""Checks of the files that a broker left, and their repair, over the `Disk` seam.

A check only reads, and no damage makes it raise. `repair` and `segment_salvage` are the two modules that write.
`pykbroker dump` shows single files, `pykbroker verify` checks whole directories and mends them on demand.

- `findings`, `file_kinds`: what is wrong and where; what a file is, by its name.
- Files: `segment_check` and `batch_walk`, `index_files`, `text_files`, `producer_files`, `snapshot_check`.
- `partition_check`, `directory_check`: the files of a partition, and of a directory, against each other.
- `repair`, `segment_salvage`: `pykbroker verify --repair` and `--salvage`.
"""

"""Files as a log needs them: the `Disk` contract and its real disk, gathered writes, checkpoints, errors."""

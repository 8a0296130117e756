"""Files as a log needs them: the `Disk` contract and its real disk, gathered writes, checkpoints, errors.

- `disk`: the contract `Disk` and `DiskFile`, turns of threads, and the real one, `OsDisk`.
- `shared_files`: files that two directories have, until one of them changes its own.
- `unsynced_disk`: the real disk without syncs, for data that goes with its process.
- `read_only_disk`: the real disk for commands that only look.
- `faulty_disk`: a disk that fails where it is told to, for simulations and for tests of users.
- `errors`: what a disk, a log and a directory may raise.
- `gathered_writes`: appends of many buffers; `cached_reads`: reads that never wait for the disk.
- `checkpoints`: Kafka's checkpoint files.
- `steps`: long work on records as a generator; `flush_turns`: the turns of the threads that flush a log.
"""

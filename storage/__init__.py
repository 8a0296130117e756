"""One partition's log on disk, in Kafka's own files. Synchronous; touches the world only through `Disk`.

The wings, from the bottom up; imports go one way:

- `files`: the `Disk`, checkpoint files, errors, work in steps.
- `producers` and `segments`: who writes to a log, and the files of one segment.
- `log`: one partition's log; `log.log.Log` is the place to start.
- `compaction`, `directories`, `checks`: what looks at logs from outside.
"""

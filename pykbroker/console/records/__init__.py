"""Records as the console shows them: where to read, a bounded fetch, what is inside, and how bytes are shown.

- `span`, `places`: what a partition has, and the offsets, distances and times that a reader types.
- `fetching`: one Fetch of some partitions of a leader, bounded in bytes.
- `unpacking`: the records in what was fetched, with bounds on decompression and on their number.
- `content`, `json_layout`: keys and values as JSON, text or a hex dump, cut where they are long.
- `cursor`, `paging`: a page of records of one partition or of several, and the way to its neighbours.

Not here: the endpoints (`pykbroker.console.api`), and the client of the broker.
"""

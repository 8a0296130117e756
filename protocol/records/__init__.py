"""Record batches: what producers send, logs keep and consumers get. `batch` is the place to start.

- `batch`: headers, batches, records in them, encoding; `record` is one record, `varints` its numbers.
- `legacy`: messages of the formats 0 and 1, read only. `control`: transaction markers and raft's control records.
- `compression`: the codecs, and the one place that decompresses, always within a limit.
- `checking`: every record of a client's batch, in turns; `timestamps`: the first record with a timestamp, in turns.
  `columns` lets both pass neighbours of one length.
- `record_parts`: keys and offsets alone, for compaction.
- `errors`: `InvalidRecords`.
"""

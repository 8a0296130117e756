"""The same sequences of requests to Apache Kafka and to pykbroker, and their answers compared field by field.

- `sequences`: steps and sequences, as they stand in files; values that come from earlier answers are references.
- `field_values`, `making`: Hypothesis draws sequences from the schemas of the messages.
- `stories`: what a client does in order, such as a transaction; `making` changes them. `error_paths` has those that
  are there for one error each.
- `building`: a step becomes a message. `asking`: a sequence is asked of a broker. `normal_answers`: what it answered,
  without what is drawn, measured or placed.
- `intended`: the differences that are meant, each with its reason.
- `recordings`: the files in `recorded/`, with Apache Kafka's answers.
- `report`: docs/differential.md.

`python -m compat_tests.differential --help` tells how to ask both.
"""

"""The same sequences of requests to Apache Kafka and to pykbroker, and their answers compared field by field.

- `sequences`: steps and sequences, as they stand in files; values that come from earlier answers are references.
- `field_values`, `making`: Hypothesis draws sequences from the schemas of the messages.
- `stories`: what a client does in order, such as a transaction; `making` changes them. `error_paths` has those that
  are there for one error each.
- `building`: a step becomes a message, `record_batches` what a Produce has in it. `asking`: a sequence is asked of one
  of the `nodes`. `normal_answers`: what it answered, without what is drawn, measured or placed. `comparison`: what
  differs.
- `intended`: the differences that are meant, each with its reason.
- `recordings`: the files in `recorded/`, with Apache Kafka's answers.
- `replaying`: recorded sequences, asked of pykbroker. `shrinking`: the shortest sequence that shows a disagreement.
- `report`: docs/differential.md.

`python -m compat_tests.differential --help` tells how to ask both.
"""

"""Records between the broker and text, for `pykbroker consume` and `pykbroker produce`.

- `codecs`, `avro`, `protobuf`: keys and values as text and as JSON, and back; `codec_options` chooses one.
- `proto_file`: what protoc makes of a `.proto` file, for `protobuf`.
- `confluent_prefix`: the bytes before data whose schema is in a registry.
- `envelope`: a whole record as a line of JSON, and back.
- `json_text`: JSON with other white space.
- `extras`: packages that only some options need.

What to read:

- `places`: where `--from` and `--to` are.
- `filters`: which records are shown.
- `bounded`: reads that end where the partitions ended.
- `printer`, `progress`: records on standard output, and a bar beside them.

What to write:

- `outgoing`: a record that is to be sent, and what makes it of a line.
- `input_lines`: lines of standard input or of a file, and whole files.
- `pace`: so many records a second.
"""

"""Flags that do not fit: one line on stderr, exit code 1, and no broker is asked."""

from importlib import import_module

import click
import pytest
from click.testing import CliRunner

from pykbroker.cli.config_options import parse_pairs
from pykbroker.cli.main import main
from pykbroker.cli.topic_filter import topic_filter
from pykbroker.cli.topic_options import parse_assignment

NOBODY = ["--bootstrap-server", "127.0.0.1:1"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("topics", "Command must include exactly one action: --list, --describe, --create, --alter or --delete"),
        ("topics --list --create", "Command must include exactly one action"),
        ("topics lst", "No such command 'lst'. Did you mean 'list'?"),
        ("topics frobnicate", "No such command 'frobnicate'.\n"),
        ("topics --create list", "--create and the word 'list' are two ways to say what to do: give one"),
        ("topics list --create", "No such option '--create'"),
        ("topics list a --topic b", "Names and --topic are two ways to say which topics: give one"),
        ("topics create", "Missing argument 'NAME …'"),
        ("topics create t --partitions 0", "The partitions must be greater than 0"),
        ("topics create t --config k", "--config expects key=value, not 'k'"),
        ("topics alter t", "Say what to alter: --partitions, --config or --delete-config"),
        ("topics alter t --replica-assignment 1:2", "--replica-assignment needs --partitions"),
        ("topics alter t --partitions 2 --config k", "--config expects key=value, not 'k'"),
        ("topics alter t --config k=1 --delete-config k", "k cannot be set and deleted at once"),
        ("topics delete", "Say which topics: their names, or --topic with a regular expression"),
        ("topics --list --yes", "--yes can be used with --delete only"),
        ("topics --list --internal", "--internal can be used with --delete only"),
        ("topics --create", "--create needs --topic"),
        ("topics --create --topic t --partitions x", "'x' is not a valid integer"),
        ("topics --create --topic t --partitions 0", "The partitions must be greater than 0"),
        ("topics --create --topic t --replication-factor 0", "The replication factor must be between 1 and 32767"),
        ("topics --create --topic t --config k", "--config expects key=value, not 'k'"),
        ("topics --create --topic t --partitions 1 --replica-assignment 1", "exclude each other"),
        ("topics --create --topic t --replica-assignment 1:1", "names a broker twice"),
        ("topics --create --topic t --replica-assignment 1:2,1", "another replication factor"),
        ("topics --create --topic t --if-exists", "--if-exists can be used with"),
        ("topics --alter --topic t", "--alter needs --partitions"),
        ("topics --alter --topic t --config a=b", "--config can be used with --create only"),
        ("topics --list --partitions 1", "--partitions can be used with --create and --alter only"),
        ("topics --list --topic (", "'(' is no regular expression"),
        ("topics --delete --topic t --under-replicated-partitions", "filtered with --describe only"),
        ("topics --frobnicate", "No such option '--frobnicate'"),
        ("topics --list extra", "No such command 'extra'"),
        ("produce", "Missing option '--topic'"),
        ("produce --topic t --acks 2", "acks must be one of all, -1, 0, 1, not '2'"),
        ("produce --topic t --compression-codec lzma", "must be one of none, gzip, snappy, lz4, zstd, not 'lzma'"),
        ("produce --topic t --property parse.key=maybe", "parse.key must be true or false, not 'maybe'"),
        ("produce --topic t --property parse.key", "--reader-property expects key=value, not 'parse.key'"),
        ("produce --topic t --batch-size many", "batch.size must be a whole number, not 'many'"),
        ("produce --topic t --acks 1 --command-property enable.idempotence=true", "needs acks=all"),
        ("consume", "Exactly one of the following arguments is required: --topic, --include"),
        ("consume --topic t --offset 3", "The partition is required when offset is specified."),
        ("consume --topic t --partition 0 --offset 3 --from-beginning", "cannot be specified together"),
        ("consume --topic t --partition 0 --group g", "cannot be specified together"),
        ("consume --topic t --partition -1", "--partition expects numbers such as 0 or 0,2, not '-1'"),
        ("consume --topic t --partition 0 --offset -7", "The provided offset value '-7' is incorrect"),
        ("consume --topic t --max-messages many", "'many' is not a valid integer"),
        ("consume --topic t --value-deserializer Avro", "Deserializer Avro is not one of"),
        ("consume --topic t --isolation-level serializable", "'serializable' is not one of"),
        ("consume --topic t --command-property auto.offset.reset=never", "must be one of earliest, latest"),
        ("groups", "Command must include exactly one action"),
        ("groups --describe", "--describe takes one of these options: --group, --all-groups"),
        ("groups --describe --group g --all-groups", "takes one of these options: --group, --all-groups"),
        ("groups --describe --group g --members --offsets", "takes at most one of these options"),
        ("groups --list --group g", "--group cannot be used with --list"),
        ("groups --list --state sleepy", "Invalid state 'sleepy'"),
        ("groups --delete --group g --topic t", "--topic can be used with --reset-offsets and --delete-offsets only"),
        ("groups --delete --group g --to-earliest", "--to-earliest can be used with --reset-offsets only"),
        ("groups --delete-offsets --group g", "needs one --group and at least one --topic"),
        ("groups --reset-offsets --group g --all-topics", "takes exactly one of these options: --to-earliest"),
        ("groups --reset-offsets --group g --all-topics --to-offset 0 --to-latest", "takes exactly one of these"),
        ("groups --reset-offsets --group g --to-latest", "takes one of these options: --all-topics, --topic"),
        ("groups --reset-offsets --group g --all-topics --to-offset -1", "-1 is not in the range x>=0"),
        ("groups --reset-offsets --group g --all-topics --to-latest --execute --dry-run", "--execute, --dry-run"),
        ("groups --reset-offsets --group g --all-topics --to-datetime today", "'today' is not a date and time"),
        ("groups --reset-offsets --group g --topic a:b --to-latest", "--topic expects a topic, or topic:0,1,2"),
        ("configs", "Command must include exactly one action: --describe, --alter"),
        ("configs --describe", "Exactly one entity type must be specified"),
        ("configs --describe --topic t --broker 1", "Exactly one entity type must be specified"),
        ("configs --describe --entity-type planets", "Invalid entity type planets"),
        ("configs --describe --entity-type users --ip 127.0.0.1", "Only 'users' and 'clients' entity types may be"),
        ("configs --describe --user a --entity-type users", "Duplicate entity type(s) specified"),
        ("configs --describe --topic t --user a", "Exactly one entity type must be specified"),
        ("configs --describe --user a --user-defaults", "A name and the default of users exclude each other"),
        ("configs --alter --entity-type users --add-config producer_byte_rate=1", "needs the name, or the default, of"),
        ("configs --alter --user a --add-config foo=1", "'foo' is no config of users; producer_byte_rate, "),
        ("configs --alter --ip 1.2.3.4 --add-config producer_byte_rate=1", "is no config of ips; connection_creation"),
        ("configs --alter --user a --add-config producer_byte_rate=x", "Cannot parse quota configuration value for"),
        ("configs --alter --client c --add-config SCRAM-SHA-256=[password=p]", "'SCRAM-SHA-256' is no config of clien"),
        ("configs --alter --user-defaults --add-config SCRAM-SHA-256=[password=p]", "There is no default of SCRAM"),
        ("configs --alter --user a --add-config SCRAM-SHA-256=[iterations=5000]", "the password is missing"),
        ("configs --alter --user a --add-config SCRAM-SHA-256=[iterations=3,password=p]", "takes 4096 to 16384 iterat"),
        ("configs --alter --user a --add-config SCRAM-SHA-256=[iterations=x,password=p]", "expects [iterations=N,pass"),
        (
            "configs --alter --user a --add-config SCRAM-SHA-256=[password=p],producer_byte_rate=1",
            "cannot be altered at once",
        ),
        ("users --alter --add-config SCRAM-SHA-256=[password=p]", "--alter needs --user"),
        ("users --alter --user a --add-config producer_byte_rate=1", "'producer_byte_rate' is no mechanism of SCRAM"),
        ("users --alter --user a --add-config SCRAM-SHA-256=[]", "A password is missing: give --password-file"),
        ("users --alter --user a --add-config SCRAM-SHA-256=[] --password-file /nothing", "/nothing: No such file"),
        ("users --describe --password-file -", "--password-file can be used with --alter only"),
        ("quotas --alter --add-config producer_byte_rate=1", "--alter needs --user, --client or --ip"),
        ("quotas --alter --user a --add-config SCRAM-SHA-256=[password=p]", "`pykbroker users` has them"),
        ("quotas --alter --user a", "At least one of --add-config"),
        ("acls", "Command must include exactly one action: --list, --add or --remove"),
        ("acls --add --topic t", "You must specify one of: --allow-principal, --deny-principal"),
        ("acls --add --topic t --allow-principal alice", "expects a principal in format principalType:principalName"),
        ("acls --add --allow-principal User:a", "You must provide at least one resource"),
        ("acls --remove --force", "You must provide at least one resource"),
        (
            "acls --add --topic t --allow-principal User:a --operation Fly",
            "TOPIC only supports operations All, Read, Wr",
        ),
        (
            "acls --add --group g --allow-principal User:a --operation write",
            "GROUP only supports operations All, Read,",
        ),
        ("acls --add --topic t --allow-principal User:a --producer --operation Read", "cannot be used with --producer"),
        ("acls --add --topic t --deny-principal User:a --producer", "--deny-principal cannot be used with --producer"),
        ("acls --add --group t --allow-principal User:a --producer", "With --producer you must specify a --topic"),
        (
            "acls --add --topic t --allow-principal User:a --consumer",
            "With --consumer you must specify a --topic and a",
        ),
        ("acls --add --topic t --allow-principal User:a --idempotent", "only available if --producer is set"),
        (
            "acls --add --topic t --allow-principal User:a --allow-host 1.2.3.4 --deny-host *",
            "--deny-host needs --deny-p",
        ),
        (
            "acls --add --topic t --allow-principal User:a --resource-pattern-type any",
            "value of 'ANY' is not valid when",
        ),
        ("acls --list --resource-pattern-type some", "must be one of any, match, literal, prefixed, not 'some'"),
        ("acls --list --producer", "--producer can be used with --add and --remove only"),
        ("acls --remove --topic t --principal User:a", "--principal can be used with --list only"),
        ("tokens", "Command must include exactly one action: --create, --renew, --expire or --describe"),
        ("tokens --create", "--create needs --max-life-time-period"),
        ("tokens --renew --renew-time-period 1", "--renew needs --hmac"),
        ("tokens --renew --hmac !! --renew-time-period 1", "--hmac is no text in base64"),
        ("tokens --expire --hmac YWJj", "--expire needs --expiry-time-period"),
        ("tokens --describe --hmac YWJj", "--hmac can be used with --renew and --expire only"),
        ("tokens --describe --renewer-principal User:a", "--renewer-principal can be used with --create only"),
        ("tokens --describe --owner-principal a", "expects a principal in format principalType:principalName"),
        ("configs --alter --topic t", "At least one of --add-config, --add-config-file, or --delete-config"),
        ("configs --alter --topic t --add-config a", "--add-config expects key=val"),
        ("configs --alter --topic t --add-config a=1 --delete-config a", "a cannot be set and deleted at once"),
        ("configs --alter --entity-type topics --add-config a=1", "An entity's name is missing"),
        ("configs --describe --topic t --add-config a=1", "--add-config can be used with --alter only"),
        ("groups describe --frobnicate", "No such option '--frobnicate'"),
        ("groups lits", "No such command 'lits'. Did you mean 'list'?"),
        ("groups --describe list", "--describe and the word 'list' are two ways to say what to do: give one"),
        ("groups list --state sleepy", "Invalid state 'sleepy'"),
        ("groups list --type some", "Invalid type 'some'. Valid types are: classic, consumer, share, streams"),
        ("groups describe --members --state", "--describe takes at most one of these options"),
        ("groups describe --lag-above -1", "-1 is not in the range x>=0"),
        ("groups delete", "delete takes either names of groups or --all-groups"),
        ("groups delete g --all-groups", "delete takes either names of groups or --all-groups"),
        ("groups reset-offsets --to-latest", "reset-offsets takes either names of groups or --all-groups"),
        ("groups reset-offsets g", "reset-offsets takes exactly one of these options: --to-earliest"),
        ("groups reset-offsets g --to-latest --dry-run --yes", "--dry-run and --execute exclude each other"),
        ("groups --list --share", "--share can be used with --all-types only"),
        ("groups --describe --group g --all-types", "--all-types can be used with --list only"),
        ("groups --list --all-types --share --streams", "Give one of --consumer, --share and --streams"),
        ("groups --list --all-types --consumer --protocol p", "Give one of --consumer, --share and --streams"),
        ("groups --list --validate-regex a", "Command must include exactly one action"),
        ("groups reset-offsets g --to-latest --export --json", "--export and --json exclude each other"),
        ("groups delete-offsets g", "Say of which topics: --topic T, or --topic T:0,1 for some partitions"),
        ("groups reset-offsets g --to-datetime today", "'today' is not a date and time"),
        ("groups delete-offsets g --topic t:x", "--topic expects a topic, or topic:0,1,2, not 't:x'"),
        ("groups --list --yes", "--yes can be used with --delete and --delete-offsets only"),
        ("groups --list --lag-above 3", "--lag-above can be used with --describe only"),
        ("configs describe", "Say of what: topic, broker, broker-logger, group, user, client, ip, client-metrics"),
        ("configs describe tpic t", "There are no configs of 'tpic'. Did you mean 'topic'"),
        ("configs describe planets", "There are no configs of 'planets'."),
        ("configs describe broker 1 --default", "--default and a name exclude each other"),
        ("configs describe topic --default", "There are no defaults of all topics"),
        ("configs --describe --topic t alter", "--describe and the word 'alter' are two ways to say what to do"),
        ("configs alter topic t", "Say what to alter: --set KEY=VALUE, --delete KEY or --from-file FILE"),
        ("configs alter topic t --set k", "--set expects key=value, not 'k'"),
        ("configs alter topic t --set k=1 --delete k", "k cannot be set and deleted at once"),
        ("configs alter topic --set k=1", "An entity's name is missing"),
        ("configs alter topic t u --set k=1", "One entity is altered at a time"),
        ("configs alter user a --set foo=1", "'foo' is no config of users; producer_byte_rate, "),
        ("quotas set --user a producer_byterate=1", "SCRAM-SHA-512 are. Did you mean 'producer_byte_rate' or "),
        ("users create", "Missing argument 'USER'"),
        (
            "users create a --mechanism PLAIN --password-file -",
            "'PLAIN' is not one of",
        ),
        ("users create a --iterations 1 --password-file -", "1 is not in the range 4096<=x<=16384"),
        ("users alter a --password-file /nothing", "/nothing: No such file"),
        ("users delete", "Missing argument 'USER …'"),
        ("quotas describe", "Say whose quotas: --user, --client or --ip, or the defaults of one"),
        ("quotas set --user a", "Missing argument 'KEY=VALUE …'"),
        ("quotas set --user a producer_byte_rate", "set expects key=value, not 'producer_byte_rate'"),
        ("quotas set --user a producer_byte_rate=x", "Cannot parse quota configuration value for"),
        ("quotas set --user a SCRAM-SHA-256=password=p", "`pykbroker users` has them"),
        ("quotas set producer_byte_rate=1", "Say whose quotas: --user, --client or --ip"),
        ("quotas delete --ip 1.2.3.4 producer_byte_rate", "is no config of ips; connection_creation_rate"),
        ("acls lst", "No such command 'lst'. Did you mean 'list'?"),
        ("acls list --producer", "No such option '--producer'"),
        ("acls add --topic t", "You must specify one of: --allow-principal, --deny-principal"),
        ("acls add --allow-principal User:a", "You must provide at least one resource"),
        ("acls remove --yes", "You must provide at least one resource"),
        ("acls remove --topic t --allow-principal a", "expects a principal in format principalType:principalName"),
        ("tokens renew", "Say which token: its id or --hmac, and not both"),
        ("tokens renew id --hmac YWJj", "Say which token: its id or --hmac, and not both"),
        ("tokens expire --hmac !!", "--hmac is no text in base64"),
        ("tokens create --owner-principal User:a --owner-principal User:b", "A token has one --owner-principal"),
        ("tokens list --owner-principal a", "expects a principal in format principalType:principalName"),
        ("delete-records", "Say what to delete: --topic T --before OFFSET|TIME|end, or --offset-json-file FILE"),
        ("delete-records --topic t", "Say what to delete: --topic T --before OFFSET|TIME|end"),
        ("delete-records --before end", "Say what to delete: --topic T --before OFFSET|TIME|end"),
        ("delete-records --topic t --before someday", "--before expects an offset, start, start+N, end"),
        ("delete-records --topic t --before 99999999999999999999", "--before: no offset is as large as"),
        ("delete-records --topic t --partition -1 --before end", "-1 is not in the range x>=0"),
        ("delete-records --offset-json-file f --topic t", "--topic and --offset-json-file exclude each other"),
        ("transactions lst", "No such command 'lst'. Did you mean 'list'?"),
        ("why gruop g", "No such command 'gruop'. Did you mean 'group'?"),
        ("topics --list --bootstrap-server nohost:port", "Bootstrap server 'nohost:port' is not HOST:PORT"),
        ("topics --list --command-config /nowhere/client.properties", "Cannot read the properties file"),
    ],
)
def test_bad_flags_are_one_line_and_exit_code_1(arguments: str, complaint: str) -> None:
    name, *flags = arguments.split()
    result = CliRunner().invoke(main, [name, *NOBODY, *flags])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert complaint in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("completion", "Missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish"),
        ("groups lag", "No such command 'lag'. Did you mean 'describe'?"),
        ("topics ls", "No such command 'ls'. Did you mean 'list'?"),
        ("topics rm orders", "No such command 'rm'. Did you mean 'delete'?"),
        (
            "cluster describe",
            "'describe' is no option of `pykbroker cluster`, which starts nodes; `pykbroker brokers`, `quorum` and "
            "`top` describe a cluster that runs",
        ),
        ("start --port abc", "Invalid value for '--port': 'abc' is not a valid integer."),
    ],
)
def test_what_is_called_otherwise_here_and_what_click_says_in_lines_is_one_line(arguments: str, complaint: str) -> None:
    result = CliRunner().invoke(main, arguments.split())
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"Error: {complaint}\n")


@pytest.mark.parametrize(
    ("word", "meant"), [("version", "--version"), ("help", "--help"), ("metadata", "brokers"), ("topic", "topics")]
)
def test_a_command_of_another_tool_is_answered_with_what_is_here(word: str, meant: str) -> None:
    result = CliRunner().invoke(main, [word])
    assert result.exit_code == 2
    assert f"No such command '{word}'. Did you mean '{meant}'" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    ["topics --list", "produce --topic t", "consume --topic t", "groups --list", "configs --describe --topic t"],
)
def test_without_a_broker_there_is_one_line_and_exit_code_1(arguments: str) -> None:
    name, *flags = arguments.split()
    result = CliRunner().invoke(main, [name, *NOBODY, *flags])
    assert result.exit_code == 1
    assert result.stderr == "Error: No broker can be reached (127.0.0.1:1: Connection refused)\n"


@pytest.mark.parametrize(
    "name", ["topics", "produce", "consume", "groups", "delete-records", "configs", "users", "acls", "quotas", "tokens"]
)
def test_every_command_has_help_and_the_local_broker_as_its_default(name: str) -> None:
    command = import_module(f"pykbroker.cli.{name.replace('-', '_')}").command
    assert isinstance(command, click.Command)
    defaults = {option.name: option.default for option in command.params}
    assert defaults["bootstrap_server"] == "127.0.0.1:9092"
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    assert "--bootstrap-server" in result.stdout


def test_a_security_protocol_that_is_not_spoken_is_refused(tmp_path: object) -> None:
    path = f"{tmp_path}/client.properties"
    with open(path, "w", encoding="utf-8") as file:
        file.write("security.protocol=TLS\n")
    result = CliRunner().invoke(main, ["topics", "--list", "--command-config", path])
    assert (
        result.stderr
        == "Error: security.protocol TLS is unknown, allowed are PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL\n"
    )


def test_config_pairs_keep_bracketed_values_together() -> None:
    assert parse_pairs("a=1,b=[x,y],c=,d=p=q") == {"a": "1", "b": "x,y", "c": "", "d": "p=q"}
    assert parse_pairs("") == {}


def test_topics_are_matched_as_a_whole_and_commas_mean_or() -> None:
    names = ["orders", "orders-eu", "users"]
    assert [name for name in names if topic_filter("orders,users")(name)] == ["orders", "users"]
    assert [name for name in names if topic_filter("orders.*")(name)] == ["orders", "orders-eu"]
    assert all(topic_filter(None)(name) for name in names)


def test_an_assignment_lists_the_replicas_of_each_partition() -> None:
    assert parse_assignment("1:2,2:3") == [[1, 2], [2, 3]]

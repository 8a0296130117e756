"""`pykbroker acls`, `users`, `quotas` and `tokens` in words, on a broker with users and rights."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from compat_tests.secure_start import secure_broker
from pykbroker.cli.main import main
from tests.cli.conftest import Outcome
from tests.cli.terminals import at_terminal

Call = Callable[..., Outcome]
Terminal = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Options of the administrator's commands."""
    directory = tmp_path_factory.mktemp("secure")
    with secure_broker(directory / "secure", directory / "data", "delegation.token.secret.key=hush") as bootstrap:
        config = directory / "secure" / "clients" / "admin.properties"
        yield ["--bootstrap-server", bootstrap, "--command-config", str(config)]


@pytest.fixture
def ask(admin: list[str]) -> Call:
    """`ask("acls list", stdin="…")` as the administrator, in this process."""

    def invoke(line: str, *more: str, stdin: str = "") -> Outcome:
        result = CliRunner().invoke(main, [*line.split(), *more, *admin], input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return invoke


@pytest.fixture
def at_ours(admin: list[str]) -> Terminal:
    return lambda line, **options: at_terminal([*line.split(), *admin], **options)


@pytest.fixture
def rights(ask: Call, topic: str) -> Callable[[], list[str]]:
    """A function that returns what alice may do with the topic, where she may write at first."""
    assert ask(f"acls add --allow-principal User:alice --producer --topic {topic}").code == 0
    return lambda: [row[-1] for row in ask(f"acls list --topic {topic}").cells]


# ACLs


@pytest.mark.parametrize(
    "action", ["list", "add --allow-principal User:a --producer --topic t", "remove --topic t --yes"]
)
def test_a_broker_without_acls_is_told_with_what_it_lacks(call: Call, action: str) -> None:
    outcome = call(f"acls {action}")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("Error: No Authorizer is configured")
    assert outcome.err.endswith(": it needs authorizer.class.name, or start --secure\n")


def test_acls_are_added_and_listed_one_a_line(ask: Call, topic: str, rights: Callable[[], list[str]]) -> None:
    assert sorted(rights()) == ["CREATE", "DESCRIBE", "WRITE"]
    assert ask(f"acls list --topic {topic}").cells[0][:-1] == ["TOPIC", topic, "LITERAL", "User:alice", "*", "ALLOW"]
    listed = json.loads(ask(f"acls list --topic {topic} --principal User:alice --json").out)
    assert {each["operation"] for each in listed} == {"CREATE", "DESCRIBE", "WRITE"}
    assert json.loads(ask(f"acls --list --topic {topic} --json").out) == listed
    added = ask(f"acls add --deny-principal User:eve --topic {topic} --json")
    assert json.loads(added.out) == [
        {
            "resource_type": "TOPIC",
            "resource_name": topic,
            "pattern_type": "LITERAL",
            "principal": "User:eve",
            "host": "*",
            "permission": "DENY",
            "operation": "ALL",
        }
    ]


def test_all_acls_of_a_topic_go_only_when_somebody_said_yes(
    ask: Call, topic: str, rights: Callable[[], list[str]]
) -> None:
    refused = ask(f"acls remove --topic {topic}")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("Error: Remove 3 ACLs? Nobody can be asked here, and --yes was not given.")
    assert f"ALLOW User:alice from *: WRITE on TOPIC {topic} (LITERAL)" in refused.err
    assert len(rights()) == 3
    removed = ask(f"acls remove --topic {topic} --yes --json")
    assert len(json.loads(removed.out)) == 3
    assert rights() == []


def test_acls_that_are_named_whole_go_without_a_question(
    ask: Call, topic: str, rights: Callable[[], list[str]]
) -> None:
    line = f"acls remove --topic {topic} --allow-principal User:alice --operation Write"
    assert [row[-1] for row in ask(line).cells] == ["WRITE"]
    assert sorted(rights()) == ["CREATE", "DESCRIBE"]
    again = ask(line)
    assert (again.code, again.err) == (0, "There are no such ACLs\n")


@pytest.mark.parametrize(("answer", "code", "left"), [(b"n\n", 1, 3), (b"y\n", 0, 0)])
def test_a_removal_of_acls_asks_at_a_terminal(
    at_ours: Terminal, topic: str, rights: Callable[[], list[str]], answer: bytes, code: int, left: int
) -> None:
    ended, shown = at_ours(f"acls remove --topic {topic} --allow-principal User:alice --producer", answer=answer)
    assert ended == code
    assert "Remove 3 ACLs? [y/N]" in shown
    assert len(rights()) == left


@pytest.mark.parametrize(("typed", "code", "left"), [("y\n", 0, 0), ("n\n", 0, 3), ("", 1, 3)])
def test_the_flag_asks_whoever_types_as_kafkas_tool_does(
    ask: Call, topic: str, rights: Callable[[], list[str]], typed: str, code: int, left: int
) -> None:
    done = ask(f"acls --remove --topic {topic}", stdin=typed)
    assert done.code == code
    assert "Are you sure you want to delete all ACLs" in done.out
    assert len(rights()) == left


@pytest.mark.parametrize("flag", ["--force", "--yes"])
def test_kafkas_force_is_the_same_as_yes(ask: Call, topic: str, rights: Callable[[], list[str]], flag: str) -> None:
    assert ask(f"acls --remove --topic {topic} {flag}").code == 0
    assert rights() == []


# Users


@pytest.fixture
def user(ask: Call, name: Callable[[str], str]) -> str:
    user = name("user")
    created = ask(f"users create {user} --password-file -", stdin="secret\n")
    assert created == Outcome(0, f"Created user {user} with SCRAM-SHA-512.\n", "")
    return user


def test_users_are_listed_with_their_mechanisms(ask: Call, user: str) -> None:
    assert [user, "SCRAM-SHA-512", "4096"] in ask("users list").cells
    assert ask(f"users describe {user}").cells == [[user, "SCRAM-SHA-512", "4096"]]
    described = [{"user": user, "mechanisms": [{"mechanism": "SCRAM-SHA-512", "iterations": 4096}]}]
    for line in (f"users describe {user}", f"users --describe --user {user}"):
        assert json.loads(ask(f"{line} --json").out) == described
    assert described[0] in json.loads(ask("users list --json").out)


def test_a_user_is_created_once_and_altered_where_there_is_one(ask: Call, user: str, tmp_path: Path) -> None:
    again = ask(f"users create {user} --password-file -", stdin="other\n")
    assert again.code == 1
    assert again.err == f"Error: The user '{user}' has a password for SCRAM-SHA-512: `users alter` sets a new one\n"
    file = tmp_path / "password"
    file.write_text("other\n")
    for mechanism in ("SCRAM-SHA-256", "scram-sha-512"):
        line = f"users alter {user} --mechanism {mechanism} --iterations 8192 --password-file {file}"
        assert ask(line) == Outcome(0, f"Completed updating config for user {user}.\n", "")
    assert [row[1:] for row in ask(f"users describe {user}").cells] == [
        ["SCRAM-SHA-256", "8192"],
        ["SCRAM-SHA-512", "8192"],
    ]
    assert ask(f"users delete {user} --mechanism SCRAM-SHA-256").code == 0
    assert ask(f"users describe {user}").cells == [[user, "SCRAM-SHA-512", "8192"]]


@pytest.mark.parametrize("line", ["users alter {} --password-file -", "users describe {}", "users delete {}"])
def test_a_misspelled_user_is_told_with_the_one_that_was_meant(ask: Call, user: str, line: str) -> None:
    missing = ask(line.format(f"{user}x"), stdin="secret\n")
    assert (missing.code, missing.out) == (1, "")
    assert missing.err.startswith(f"Error: There is no user '{user}x'. Did you mean '{user}'")
    assert ask(f"users delete {user}x --if-exists") == Outcome(0, "", "")


def test_a_person_types_a_password_twice_and_is_asked_before_it_goes(at_ours: Terminal, ask: Call, user: str) -> None:
    ended, shown = at_ours(f"users delete {user}", answer=b"y\n")
    assert ended == 0
    assert f"{user} (SCRAM-SHA-512)" in shown
    assert user not in ask("users list").out
    passwords = [(f"Password of {user}:".encode(), b"hush hush\n"), (b"Repeat for confirmation:", b"hush hush\n")]
    ended, shown = at_ours(f"users create {user}", typed=passwords)
    assert ended == 0
    assert "hush" not in shown
    assert user in ask("users list").out


@pytest.mark.parametrize(
    ("line", "question"), [("users alter {}", b"Password of"), ("acls --remove --topic {}", b"[y/N]")]
)
def test_ctrl_c_at_a_question_changes_nothing(
    at_ours: Terminal, ask: Call, user: str, line: str, question: bytes
) -> None:
    ask(f"acls add --topic {user} --allow-principal User:{user}")
    ended, shown = at_ours(line.format(user), typed=[(question, b"\x03")])
    assert ended == 130
    assert "Traceback" not in shown
    assert len(ask(f"acls list --topic {user}").cells) == 1


def test_without_a_terminal_a_password_must_come_from_somewhere(ask: Call, user: str) -> None:
    refused = ask(f"users alter {user}")
    assert refused.err == "Error: A password is missing: give --password-file, or - for standard input\n"


# Quotas


def test_quotas_are_set_listed_and_deleted(ask: Call, name: Callable[[str], str]) -> None:
    user = name("user")
    set_ = ask(f"quotas set --user {user} producer_byte_rate=1024 request_percentage=50.5")
    assert (set_.code, set_.err) == (0, "")
    assert ask(f"quotas set --user {user} --client-defaults consumer_byte_rate=7").code == 0
    rows = [line for line in ask("quotas list").lines if user in line]
    assert sorted(row.split()[-2:] for row in rows) == [
        ["consumer_byte_rate", "7.0"],
        ["producer_byte_rate", "1024.0"],
        ["request_percentage", "50.5"],
    ]
    described = json.loads(ask(f"quotas describe --user {user} --json").out)
    own = {"entity": {"user": user}, "quotas": {"producer_byte_rate": 1024, "request_percentage": 50.5}}
    assert own in described
    assert {"entity": {"client-id": None, "user": user}, "quotas": {"consumer_byte_rate": 7}} in described
    assert json.loads(ask(f"quotas --describe --user {user} --json").out) == described
    assert ask(f"quotas delete --user {user} producer_byte_rate") == Outcome(0, "", "")
    left = json.loads(ask(f"quotas describe --user {user} --json").out)
    assert own | {"quotas": {"request_percentage": 50.5}} in left
    missing = ask(f"quotas delete --user {user} producer_byte_rate")
    assert missing.err == f"Error: There is no producer_byte_rate of user-principal '{user}'\n"


def test_a_deletion_of_quotas_shows_them_and_asks_at_a_terminal(
    at_ours: Terminal, ask: Call, name: Callable[[str], str]
) -> None:
    user = name("user")
    ask(f"quotas set --user {user} producer_byte_rate=1024 consumer_byte_rate=2048")
    ended, shown = at_ours(f"quotas delete --user {user}", answer=b"n\n")
    assert ended == 1
    assert "producer_byte_rate=1024.0" in shown
    assert f"Delete 2 quotas of user-principal '{user}'? [y/N]" in shown
    assert len(ask(f"quotas describe --user {user}").cells) == 2
    assert at_ours(f"quotas delete --user {user}", answer=b"y\n")[0] == 0
    assert ask(f"quotas describe --user {user} --json").out == "[]\n"


# Tokens


def test_the_hmac_of_a_token_is_printed_when_it_is_made_and_not_again(ask: Call) -> None:
    [token] = json.loads(ask("tokens create --max-life-time-period 3600000 --json").out)
    assert token["owner"] == "User:admin"
    assert token["max_ms"] - token["issued_ms"] == 3_600_000
    for line in ("tokens list", "tokens list --json", "tokens list --owner-principal User:admin", "tokens --describe"):
        listed = ask(line)
        assert token["token_id"] in listed.out
        assert (token["hmac"] in listed.out) == (line == "tokens --describe")
    assert token["hmac"] not in ask("tokens --describe --json").out
    assert ask("tokens list --owner-principal User:nobody --json").out == "[]\n"


def test_a_token_is_renewed_and_expired_by_its_id(ask: Call, at_ours: Terminal) -> None:
    [token] = json.loads(ask("tokens create --json").out)
    renewed = ask(f"tokens renew {token['token_id']} --renew-time-period 60000")
    assert (renewed.code, renewed.err) == (0, "")
    [shown] = [each for each in json.loads(ask("tokens list --json").out) if each["token_id"] == token["token_id"]]
    assert shown["expires_ms"] < token["expires_ms"]
    assert ask("tokens expire nobody").err.startswith("Error: There is no token 'nobody' that you may see.")
    ended, asked = at_ours(f"tokens expire {token['token_id']}", answer=b"n\n")
    assert ended == 1
    assert "Expire this delegation token? [y/N]" in asked
    [again] = json.loads(ask(f"tokens renew {token['token_id']} --renew-time-period 90000 --json").out)
    assert again["token_id"] == token["token_id"]
    assert again["expires_ms"] > shown["expires_ms"]
    [expired] = json.loads(ask(f"tokens expire {token['token_id']} --json").out)
    assert expired["expires_ms"] < again["expires_ms"]
    assert token["token_id"] not in ask("tokens list").out


def test_a_token_is_named_by_its_hmac_too(ask: Call) -> None:
    [token] = json.loads(ask("tokens create --json").out)
    assert ask("tokens renew", "--hmac", token["hmac"]).code == 0
    assert ask("tokens expire", "--hmac", token["hmac"]).code == 0
    assert token["token_id"] not in ask("tokens list").out

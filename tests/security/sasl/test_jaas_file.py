"""JAAS files: which section counts for a listener, what is in it, and what is wrong with one, without a secret."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.security.java_options import MOST_BYTES, options_of_process
from pykbroker.security.sasl.jaas import InvalidSections, LoginModule, parse_sections
from pykbroker.security.sasl.jaas_file import JaasFile
from pykbroker.security.sasl.node_settings import between_brokers, check_sasl, sasl_settings
from pykbroker.security.sasl.process_options import ProcessOptions

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
BASE = {
    "listeners": "INSIDE://127.0.0.1:9092,EXT://127.0.0.1:9094,CONTROLLER://127.0.0.1:9093",
    "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT,EXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
}
BOTH = f"""
/* of all listeners */
KafkaServer {{
    {PLAIN} required
        username="admin"
        password="admin-secret"
        user_admin="admin-secret"; // the last option
    {SCRAM} Required;
}};
ext.KafkaServer {{ {PLAIN} required user_bob="of-bob"; {SCRAM} required; }};
KafkaClient {{ {SCRAM} optional username="alice" password="hunter2"; }};
"""


def sections(text: str, **properties: str) -> dict[str, tuple[LoginModule, ...]]:
    return parse_sections(text, properties)


def options(text: str) -> ProcessOptions:
    return ProcessOptions(jaas_file=JaasFile("/etc/jaas.conf", sections(text)))


def users(given: ProcessOptions, listener: str, **more: str) -> dict[str, str]:
    config = BrokerConfig(BASE | {name.replace("__", "."): text for name, text in more.items()})
    plain = next(each for each in sasl_settings(config, listener, given).mechanisms if each.name == "PLAIN")
    return {name: text for name, text in plain.options.items() if name.startswith("user_")}


def test_sections_have_modules_with_options() -> None:
    found = sections(BOTH)
    assert list(found) == ["KafkaServer", "ext.KafkaServer", "KafkaClient"]
    plain, scram = found["KafkaServer"]
    assert plain.options == {"username": "admin", "password": "admin-secret", "user_admin": "admin-secret"}
    assert (scram.module, scram.control_flag, scram.options) == (SCRAM, "required", {})


def test_a_listener_has_its_own_section_or_that_of_all() -> None:
    given = options(BOTH)
    assert users(given, "INSIDE") == {"user_admin": "admin-secret"}
    assert users(given, "EXT") == {"user_bob": "of-bob"}
    check_sasl(BrokerConfig(BASE), given)


def test_a_section_for_a_listener_in_upper_case_is_nobodys() -> None:
    assert users(options(BOTH.replace("ext.", "EXT.")), "EXT") == {"user_admin": "admin-secret"}


def test_a_line_of_the_properties_wins() -> None:
    line = f"{PLAIN} required user_carol=of-carol;"
    assert users(options(BOTH), "EXT", listener__name__ext__plain__sasl__jaas__config=line) == {
        "user_carol": "of-carol"
    }


def test_of_several_entries_of_a_module_the_first_that_has_an_option_counts() -> None:
    entries = f"{PLAIN} required user_a=first; {PLAIN} required user_a=second user_b=other; {SCRAM} required;"
    text = f"KafkaServer {{ {entries} }};"
    assert users(options(text), "EXT") == {"user_a": "first", "user_b": "other"}


@pytest.mark.parametrize(
    ("entries", "shown"),
    [
        (f"{SCRAM} required username=a password=b; {PLAIN} required username=c password=d;", b"\0c\0d"),
        (f"{SCRAM} required username=a password=b; {PLAIN} required;", b"\0a\0b"),
        (f"{SCRAM} required; {PLAIN} required username=c; {PLAIN} required password=d;", b"\0c\0d"),
    ],
)
def test_the_node_shows_the_name_and_password_of_its_mechanism_or_of_its_section(entries: str, shown: bytes) -> None:
    own = between_brokers(BrokerConfig(BASE), options(f"KafkaServer {{ {entries} }};"))
    assert own is not None
    assert own.credentials().new_exchange().step(b"") == shown


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"Kafka {{ {PLAIN} required; }};", "has no section inside.KafkaServer or KafkaServer"),
        (f"KafkaServer {{ {PLAIN} required; }};", f"lacks the login module of SCRAM-SHA-256, {SCRAM}"),
        (f"KafkaServer {{ {SCRAM} required; }};", f"lacks the login module of PLAIN, {PLAIN}"),
        ("KafkaServer { };", "lacks the login module"),
    ],
)
def test_a_section_that_lacks_something_is_named(text: str, reason: str) -> None:
    given = options(text)
    with pytest.raises(ConfigurationError) as refused:
        check_sasl(BrokerConfig(BASE), given)
    assert reason in str(refused.value)
    assert "/etc/jaas.conf" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_node_without_a_name_in_its_section_names_the_section() -> None:
    text = f"KafkaServer {{ {PLAIN} required user_a=hunter2; {SCRAM} required; }};"
    own = between_brokers(BrokerConfig(BASE), options(text))
    assert own is not None
    with pytest.raises(ConfigurationError) as refused:
        own.credentials()
    assert "section KafkaServer of /etc/jaas.conf: username and password must be given" in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (f"KafkaServer {{\n {PLAIN} required\n user_a=hunter2\n}};", 4, "option number 2 has no name"),
        (f"KafkaServer {{ {PLAIN} required; }}", 1, "';' is expected"),
        (f"KafkaServer {{ {PLAIN} required;", 1, "the section has no end"),
        (f"KafkaServer {PLAIN} required;", 1, "'{' is expected"),
        (f"KafkaServer {{ {PLAIN} hunter2; }};", 1, "a control flag is expected"),
        (f"KafkaServer {{ {PLAIN} required user_a=1234; }};", 1, "option number 1 has no value"),
        (f"KafkaServer {{ {PLAIN} required user_a='hunter2'; }};", 1, "option number 1 has no value"),
        (f"KafkaServer {{ {PLAIN} required user_a=h@nter2; }};", 1, "option number 2 has no name"),
        (f'KafkaServer {{ {PLAIN} required user_a="x${{hunter2}}"; }};', 1, "names a system property"),
        (f"\n# hunter2\nKafkaServer {{ {PLAIN} required; }};", 2, "the name of a section is expected"),
        (f"A {{ {PLAIN} required; }};\nA {{ {PLAIN} required; }};", 2, "stands there already"),
        ("KafkaServer { = }; ", 1, "a login module, or the end of the section, is expected"),
    ],
)
def test_what_java_does_not_read_is_refused_with_its_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(InvalidSections) as refused:
        sections(text)
    assert str(refused.value).startswith(f"line {line}: ")
    assert reason in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_values_are_read_as_java_reads_them() -> None:
    text = rf'"Kafka Server" {{ {PLAIN} required "user_a"="a\tb\055c" user_b=b-c_d$e*.f / comment' "\n user_c=ä; };"
    (module,) = sections(text)["Kafka Server"]
    assert module.options == {"user_a": "a\tb-c", "user_b": "b-c_d$e*.f", "user_c": "ä"}


def test_a_value_may_name_a_system_property() -> None:
    text = f'KafkaServer {{ {PLAIN} required user_a="x${{the.password}}y" user_b="${{{{no}}}}" user_c="${{open"; }};'
    (module,) = parse_sections(text, {"the.password": "p"})["KafkaServer"]
    assert module.options == {"user_a": "xpy", "user_b": "${{no}}", "user_c": "${open"}


def written(tmp_path: Path, data: bytes, mode: int = 0o600) -> Path:
    path = tmp_path / "jaas.conf"
    path.write_bytes(data)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("form", ["{}", "={}", "file:{}", "file://{}"])
def test_the_environment_names_the_file(tmp_path: Path, form: str) -> None:
    path = written(tmp_path, BOTH.encode())
    given = options_of_process(f"-Xmx1g -Djava.security.auth.login.config={form.format(path)} -Da=b")
    assert given.jaas_file is not None
    assert given.jaas_file.path == str(path)
    assert "hunter2" not in repr(given)
    assert options_of_process("-Xmx1g").jaas_file is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "No such file"),
        (b"x" * (MOST_BYTES + 1), f"more than {MOST_BYTES} bytes"),
        (b"\xff", "no text in UTF-8"),
        (b"KafkaServer hunter2", "line 1"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, data: bytes | None, reason: str) -> None:
    path = tmp_path / "jaas.conf" if data is None else written(tmp_path, data)
    with pytest.raises(ConfigurationError, match=str(path)) as refused:
        options_of_process(f"-Djava.security.auth.login.config={path}")
    assert reason in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_pipe_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigurationError, match="no file"):
        options_of_process(f"-Djava.security.auth.login.config={tmp_path / 'pipe'}")


@pytest.mark.parametrize(("mode", "is_warned"), [(0o600, False), (0o640, False), (0o604, True)])
def test_a_file_that_everybody_may_read_is_a_warning(
    tmp_path: Path, mode: int, is_warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    path = written(tmp_path, BOTH.encode(), mode)
    with caplog.at_level(logging.WARNING):
        options_of_process(f"-Djava.security.auth.login.config={path}")
    assert (f"{path}: every user of this machine may read this JAAS file" in caplog.text) == is_warned

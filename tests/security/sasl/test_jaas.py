"""JAAS lines, token by token as Java's StreamTokenizer reads them."""

import pytest

from pykbroker.config import ConfigurationError
from pykbroker.security.sasl.jaas import LoginModule, parse_jaas, parse_one

KEY = "listener.name.internal.plain.sasl.jaas.config"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def options(text: str) -> dict[str, str]:
    return parse_one(KEY, f"{PLAIN} required {text};").options


def test_kafkas_own_example_is_read() -> None:
    module = parse_one(KEY, f'{PLAIN} required username="admin" password="admin-secret" user_alice="a b;c";')
    expected = {"username": "admin", "password": "admin-secret", "user_alice": "a b;c"}
    assert module == LoginModule(PLAIN, "required", expected)
    assert module.class_name == "PlainLoginModule"


@pytest.mark.parametrize("flag", ["required", "REQUISITE", "Sufficient", "optional"])
def test_a_control_flag_may_be_of_any_case(flag: str) -> None:
    assert parse_one(KEY, f"M {flag};").control_flag == flag.lower()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("k=word", "word"),
        ("k = 'single \"quotes\"'", 'single "quotes"'),
        ('k="a\\tb\\"c\\\\d"', 'a\tb"c\\d'),
        ('k="\\101\\60\\4778"', "A0\x27" + "78"),
        ('k="\\q"', "q"),
        ('k="//no comment /* here */"', "//no comment /* here */"),
        ("k=/* a comment */v // another\n", "v"),
        ("k=v/the rest of the line is a comment\n", "v"),
        ("k=user@EXAMPLE.COM", "user@EXAMPLE.COM"),
        ('k="ünïcode €"', "ünïcode €"),
        ("k=ünïcode€", "ünïcode€"),
        ('k=""', ""),
        ('k="ends with its line\n', "ends with its line"),
    ],
)
def test_a_value_is_read_as_java_reads_it(text: str, value: str) -> None:
    assert options(text) == {"k": value}


def test_the_last_of_two_values_counts() -> None:
    assert options("k=1 k=2 j=3") == {"k": "2", "j": "3"}


def test_several_entries_are_read_where_they_are_allowed() -> None:
    text = 'A required;\n B optional x="1";'
    assert [each.module for each in parse_jaas(KEY, text)] == ["A", "B"]
    with pytest.raises(ConfigurationError, match="2 login modules are named, and one is expected"):
        parse_one(KEY, text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no login module"),
        ("/* only a comment", "no login module"),
        ("; required", "a login module is expected in front of ';'"),
        ("M", "a control flag is expected"),
        ("M hunter2;", "a control flag is expected"),
        ("M ;", "a control flag is expected"),
        ("M required password hunter2;", "option number 1 has no value"),
        ("M required a=b password=;", "option number 2 has no value"),
        ("M required password=", "option number 1 has no value"),
        ("M required =hunter2;", "option number 1 has no name"),
        ("M required password=hunter2", "must end with a semicolon"),
        ('M required password="hunter2;', "must end with a semicolon"),
        ('M required password="hun"ter2";', "option number 2 has no value"),
    ],
)
def test_a_bad_line_is_told_by_its_key_and_never_by_its_value(text: str, reason: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_jaas(KEY, text)
    assert KEY in str(refused.value)
    assert reason in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_login_module_shows_no_option() -> None:
    assert "hunter2" not in repr(parse_one(KEY, "M required password=hunter2;"))

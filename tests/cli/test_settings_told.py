"""What a start, and `start --check-config`, tell of settings: where they come from, and what is wrong with them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pykbroker.cli.settings_told import Setting, settings_of, tell_settings
from pykbroker.cli.start_config import load_config
from pykbroker.config import ConfigurationError

from .test_start import TIMEOUT_S, StartNode, run_process, start  # noqa: F401 - a fixture

FILE = """\
# one node
num.partitions=3
num.io.threads=9
listeners=PLAINTEXT://127.0.0.1:0,\\
  CONTROLLER://127.0.0.1:0
ssl.key.password=secret
log.retention.hour=5
num.partitions=4
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(FILE)
    return path


def told(file: Path | None, **more: object) -> dict[str, Setting]:
    config = load_config(file, {"log.dirz": "d"}, None, **more)  # type: ignore[arg-type]
    return {each.key: each for each in settings_of(config)}


def check(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    process = run_process("start", "--check-config", *arguments, cwd=cwd)
    out, err = process.communicate(timeout=TIMEOUT_S)
    return subprocess.CompletedProcess([], process.returncode, out, err)


def test_each_setting_knows_its_line_or_its_flag(file: Path) -> None:
    below = {"--as 2.8": {"log.message.timestamp.after.max.ms": "5", "num.partitions": "7"}}
    settings = told(file, port=9099, defaults={"log.segment.delete.delay.ms": "1000"}, below=below)
    assert {key: each.origin for key, each in settings.items()} == {
        "num.partitions": f"{file}:8",
        "num.io.threads": f"{file}:3",
        "listeners": "--port",
        "ssl.key.password": f"{file}:6",
        "log.retention.hour": f"{file}:7",
        "log.dirz": "--override",
        "log.message.timestamp.after.max.ms": "--as 2.8",
        "log.segment.delete.delay.ms": "--dev",
        "log.dirs": "default of pykbroker start",
    }
    assert settings["num.partitions"].value == "4"


def test_what_has_no_effect_and_what_nobody_knows_is_remarked(file: Path) -> None:
    remarks = {key: each.remark for key, each in told(file).items() if each.remark}
    assert remarks == {
        "num.io.threads": "has no effect in pykbroker",
        "log.retention.hour": "unknown, and ignored; did you mean log.retention.hours?",
        "log.dirz": "unknown, and ignored; did you mean log.dir?",
    }


def test_a_key_of_zookeeper_is_told_as_such() -> None:
    config = load_config(None, {"zookeeper.connect": "localhost:2181"}, None)
    [remark] = [each.remark for each in settings_of(config) if each.key == "zookeeper.connect"]
    assert remark == "unknown, and ignored; there is no ZooKeeper: brokers and controllers keep the metadata"


def test_secrets_and_what_may_be_one_are_hidden(file: Path) -> None:
    settings = told(file)
    assert {settings[key].value for key in ("ssl.key.password", "log.retention.hour")} == {"[hidden]"}


def test_a_password_in_a_url_is_hidden(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(
        "sasl.oauthbearer.token.endpoint.url=https://me:pa@ss@idp:8443/token?client_secret=abc&x=1\n"
        "listener.name.plaintext.sasl.oauthbearer.jwks.endpoint.url=https://idp/keys?key=abc\n"
    )
    values = [each.value for each in told(path).values() if each.key.endswith(".url")]
    assert values == [
        "https://[hidden]@idp:8443/token?client_secret=[hidden]&x=[hidden]",
        "https://idp/keys?key=[hidden]",
    ]


def test_a_key_of_one_listener_gets_a_suggestion_as_well() -> None:
    config = load_config(None, {"listener.name.plaintext.max.conections": "5"}, None)
    [remark] = [each.remark for each in settings_of(config) if each.key.startswith("listener.name")]
    assert remark == "unknown, and ignored; did you mean listener.name.plaintext.max.connections?"


def test_a_value_that_is_not_allowed_is_told_with_its_place(file: Path) -> None:
    file.write_text("\n\nnum.partitions=none\n")
    with pytest.raises(ConfigurationError, match=rf"num.partitions: Not a number of type INT \({file}:3\)"):
        load_config(file, {}, None)


def test_a_start_logs_its_settings_by_their_origin(start: StartNode, file: Path) -> None:  # noqa: F811
    file.write_text(FILE.replace("listeners=", "no.such="))
    _, _, err = start(file).end()
    assert "settings of server.properties: num.partitions=4 (line 8), num.io.threads=9 (line 3)" in err.replace(
        str(file), file.name
    )
    assert "num.partitions stands in lines 2, 8, and the last one counts" in err
    assert "secret" not in err


def test_a_check_starts_nothing_and_prints_the_settings(file: Path, tmp_path: Path) -> None:
    done = check("--override", "num.partitions=6", file, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert rows[0][:2] == ["KEY", "VALUE"]
    assert ["num.partitions", "6", "--override"] in rows
    assert not (tmp_path / "pykbroker-data").exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("num.partitions=0\n", "num.partitions"),
        ("principal.builder.class=x\n", "pykbroker does not serve this yet"),
        ("listeners=SSL://127.0.0.1:0\nssl.keystore.location=nowhere.jks\n", "nowhere.jks"),
        ("listeners=SASL_PLAINTEXT://127.0.0.1:0\nsasl.enabled.mechanisms=GSSAPI\n", "GSSAPI"),
        ("a=\\u12g4\n", "line 1"),
        ("broker.rack=\\udc80\n", "line 1"),
    ],
)
def test_a_check_of_what_could_not_start_is_one_line(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "bad.properties").write_text(content)
    done = check("bad.properties", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: ")
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


def test_ten_thousand_unknown_keys_are_a_line_of_bounded_length(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "many.properties"
    path.write_text("".join(f"no.such.key.{i}={'x' * 1000}\n" for i in range(10_000)))
    with caplog.at_level("INFO"):
        tell_settings(load_config(path, {}, None))
    assert len(caplog.messages) == 2
    assert all(len(line) < 30_000 for line in caplog.messages)
    assert "and 9900 more" in caplog.messages[-1]


def test_a_key_of_the_file_makes_no_line_of_its_own_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "hostile.properties"
    path.write_text("a\\n2026-11-29\\ ERROR\\ all\\ is\\ lost=1\na\\u001b[31m=1\n" + "k" * 100_000 + "=1\n")
    with caplog.at_level("INFO"):
        tell_settings(load_config(path, {}, None))
    assert any("ERROR all is lost" in line for line in caplog.messages)
    assert all(line.isprintable() and len(line) < 3_000 for line in caplog.messages)


def test_an_override_that_is_not_utf_8_is_one_line(tmp_path: Path) -> None:
    done = check("--override", "broker.rack=\udcff", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: --override broker.rack: half of a surrogate pair, or a byte outside of UTF-8")
    assert done.stderr.count("\n") == 1

"""The directory of `pykbroker start --secure`: made once, and read at each start.

Nothing in it is replaced but the certificate of the broker, a month before it ends, and the clients' files. It appears
as a whole, or not at all.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree

from pykbroker.config import ConfigurationError
from pykbroker.config.properties import read_properties

from .authority import Certified, broker_certificate, new_authority
from .client_files import MECHANISM, client_files
from .stores import AUTHORITY_KEY, AUTHORITY_PEM, BROKER_PEM, authority_files, broker_files
from .users import ADMINISTRATOR, APPLICATION, User, new_password, new_users

PROPERTIES = "server.properties"
CLIENTS = "clients"
_USERS = "users.properties"
_STORE_PASSWORD = "store-password"  # noqa: S105 - no password
_FOR_OWNER = 0o600
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclass(frozen=True, slots=True)
class SecureDirectory:
    """The directory with its users by name. path: absolute."""

    path: Path
    users: Mapping[str, User]

    @property
    def properties(self) -> Path:
        return self.path / PROPERTIES

    @property
    def authority(self) -> Path:
        return self.path / AUTHORITY_PEM

    @property
    def admin_properties(self) -> Path:
        """The administrator's configuration, for `--command-config`."""
        return self.path / CLIENTS / f"{ADMINISTRATOR}.properties"

    def write_client_files(self, bootstrap: str) -> None:
        """Write the clients' configurations for a broker that serves at `bootstrap`. Raises ConfigurationError."""
        directory = self.path / CLIENTS
        try:
            directory.mkdir(mode=0o700, exist_ok=True)
            for name, content in client_files(dict(self.users), self.authority, bootstrap).items():
                _replace(directory / name, content)
        except OSError as error:
            raise _unwritable(directory, error) from None


def open_directory(path: Path) -> SecureDirectory:
    """Make the directory, or read it where it is there. Raises ConfigurationError."""
    path = Path(os.path.abspath(path))
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        _make(path)
    elif not (path / PROPERTIES).is_file():
        raise ConfigurationError(f"{path} is no directory of --secure: {PROPERTIES} is not there, and other files are")
    passwords = read_properties(path / _USERS)
    missing = [name for name in (ADMINISTRATOR, APPLICATION) if not passwords.get(name)]
    if missing:
        raise ConfigurationError(f"{path / _USERS} has no password of {' and '.join(missing)}")
    _renew(path)
    return SecureDirectory(path, {name: User(name, password) for name, password in passwords.items()})


def _make(path: Path) -> None:
    """Write everything beside the place, and move it there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))  # nobody else may enter it
        try:
            now, store_password, users = datetime.now(UTC), new_password(), new_users()
            authority = new_authority(now)
            files = authority_files(authority, store_password)
            files |= broker_files(broker_certificate(authority, _hosts(), now), authority, store_password)
            files[_STORE_PASSWORD] = store_password.encode()
            files[_USERS] = "".join(f"{user.name}={user.password}\n" for user in users).encode()
            files[PROPERTIES] = _server_properties(path, users).encode()
            for name, content in files.items():
                _write(beside / name, content)
            beside.rename(path)
        except BaseException:
            rmtree(beside, ignore_errors=True)
            raise
    except OSError as error:
        raise _unwritable(path, error) from None


def _renew(path: Path) -> None:
    """Make the broker's certificate anew where it ends soon, with the names that it has. Raises ConfigurationError."""
    now = datetime.now(UTC)
    try:
        store = (path / BROKER_PEM).read_bytes()
        broker = Certified.read(store, store)
        if not broker.ends_soon(now):
            return
        authority = Certified.read((path / AUTHORITY_KEY).read_bytes(), (path / AUTHORITY_PEM).read_bytes())
        password = (path / _STORE_PASSWORD).read_text().strip()
        for name, content in broker_files(
            broker_certificate(authority, broker.hosts, now), authority, password
        ).items():
            _replace(path / name, content)
    except OSError as error:
        raise ConfigurationError(f"Cannot read {error.filename}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigurationError(f"The keys in {path} cannot be read: {error}") from None


def _hosts() -> list[str]:
    """The names of this machine, as far as it knows them itself."""
    names = ["localhost", "127.0.0.1", "::1", socket.gethostname()]
    return list(dict.fromkeys(name for name in names if name.isascii() and name))


def _server_properties(path: Path, users: tuple[User, ...]) -> str:
    admin = next(user for user in users if user.name == ADMINISTRATOR)
    plain = " ".join(f'user_{user.name}="{user.password}"' for user in users)
    own = f'username="{admin.name}" password="{admin.password}"'
    return f"""\
# A broker with TLS, users and rights, made by `pykbroker start --secure`. It is yours to change.
listeners=SASL_SSL://127.0.0.1:9092
security.inter.broker.protocol=SASL_SSL
sasl.mechanism.inter.broker.protocol={MECHANISM}
sasl.enabled.mechanisms=SCRAM-SHA-512,SCRAM-SHA-256,PLAIN
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={_SCRAM} required {own};
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config={_SCRAM} required;
listener.name.sasl_ssl.plain.sasl.jaas.config={_PLAIN} required {plain};
ssl.keystore.type=PEM
ssl.keystore.location={path / BROKER_PEM}
ssl.truststore.type=PEM
ssl.truststore.location={path / AUTHORITY_PEM}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:{admin.name}
delegation.token.secret.key={new_password()}
"""


def _replace(path: Path, content: bytes) -> None:
    """Put a new file in the place of one that is there, unless it is the same."""
    if path.is_file() and path.read_bytes() == content:
        return
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    _write(beside, content)
    beside.replace(path)


def _write(path: Path, content: bytes) -> None:
    """Write a new file that its owner alone may read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FOR_OWNER), "wb") as file:
        file.write(content)


def _unwritable(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(f"Cannot write {path}: {error.strerror}")

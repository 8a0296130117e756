"""Makes the files in `stores/`, by Java's keytool and by openssl: `python -m tests.security.make_stores`.

They are stores as both write them, kept so that they are read where neither is installed. What is in them was made for
this purpose and protects nothing. Programs of other years write other formats, so the options say which.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from compat_tests.apache_kafka.java import find_java

DIRECTORY = Path(__file__).with_name("stores")
STORE_PASSWORD = "store-password"
KEY_PASSWORD = "key-password"
OF_JAVA_8 = ("-J-Dkeystore.pkcs12.legacy",)
"""Certificates in RC2 with 40 bits, keys in triple DES, a MAC of SHA-1."""
WITHOUT_PASSWORD = ("-J-Dkeystore.pkcs12.certProtectionAlgorithm=NONE", "-J-Dkeystore.pkcs12.macAlgorithm=NONE")
"""As Java's own trust store is since Java 18."""


def keytool(command: str, store: str, store_type: str, *options: str) -> None:
    program = str(Path(find_java()).resolve().with_name("keytool"))
    where = ("-keystore", str(DIRECTORY / store), "-storetype", store_type, "-storepass", STORE_PASSWORD)
    subprocess.run([program, f"-{command}", "-noprompt", *where, *options], check=True, capture_output=True)


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def two_keys(store: str, store_type: str, *options: str) -> None:
    """One key of RSA and one of EC, and a certificate that is trusted."""
    for alias, algorithm in (("of-rsa", ("-keyalg", "RSA")), ("of-ec", ("-keyalg", "EC", "-groupname", "secp256r1"))):
        name = ("-dname", f"CN={alias},O=Example", "-ext", f"SAN=dns:{alias}.example.org", "-validity", "36500")
        keytool("genkeypair", store, store_type, "-alias", alias, *algorithm, *name, *options)


def main() -> None:
    for path in DIRECTORY.iterdir():
        path.unlink()
    with tempfile.TemporaryDirectory() as directory:
        key, certificate = str(Path(directory, "key.pem")), str(Path(directory, "certificate.pem"))
        curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
        name = ("-subj", "/O=Example/CN=of-openssl", "-days", "36500")
        openssl("req", "-x509", "-noenc", *curve, "-keyout", key, "-out", certificate, *name)
        exported = ("-inkey", key, "-in", certificate, "-name", "of-openssl", "-passout", f"pass:{STORE_PASSWORD}")
        openssl("pkcs12", "-export", "-out", str(DIRECTORY / "openssl.p12"), *exported)
        openssl("pkcs12", "-export", "-legacy", "-out", str(DIRECTORY / "openssl-legacy.p12"), *exported)
        unmarked = ("-nokeys", "-in", certificate, "-passout", f"pass:{STORE_PASSWORD}")
        openssl("pkcs12", "-export", "-out", str(DIRECTORY / "openssl-trust.p12"), *unmarked)
        trusted = ("-alias", "Authority", "-file", certificate)
        two_keys("two-keys.jks", "JKS", "-keypass", KEY_PASSWORD)
        keytool("importcert", "two-keys.jks", "JKS", *trusted)
        two_keys("two-keys.p12", "PKCS12")
        keytool("importcert", "two-keys.p12", "PKCS12", *trusted)
        two_keys("of-java-8.p12", "PKCS12", *OF_JAVA_8)
        keytool("importcert", "of-java-8.p12", "PKCS12", *trusted, *OF_JAVA_8)
        two_keys("two-keys.jceks", "JCEKS")
        keytool("importcert", "trust.jks", "JKS", *trusted)
        keytool("importcert", "trust.p12", "PKCS12", *trusted)
        keytool("importcert", "trust-without-password.p12", "PKCS12", *trusted, *WITHOUT_PASSWORD)


if __name__ == "__main__":
    main()

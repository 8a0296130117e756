"""buildah, which makes the image from a Debian root and runs commands in it: no daemon and no image registry is needed.

The base image is a `debootstrap`ed Debian with Python instead of `python:slim`. Root and Debian's packages `buildah`
and `debootstrap` are needed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
BASE = "localhost/pykbroker-test-base"
IMAGE = "localhost/pykbroker-test"
CERTIFICATES = "/etc/ssl/certs"
PROGRAMS = ("buildah", "debootstrap")


def run(*command: str, timeout_s: float = 600) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


class Buildah:
    """buildah with a storage of its own, so that nothing is left on the machine. driver: overlay, where that is
    served."""

    def __init__(self, storage: Path, driver: str) -> None:
        places = ("--root", str(storage / "root"), "--runroot", str(storage / "run"))
        self.storage = storage
        self.driver = driver
        self.prefix = ("buildah", "--storage-driver", driver, *places)

    @classmethod
    def fastest(cls, storage: Path) -> Buildah:
        """Take `overlay`, which copies nothing, where the file system allows it, else `vfs`."""
        for driver in ("overlay", "vfs"):
            tool = cls(storage / driver, driver)
            done = subprocess.run([*tool.prefix, "from", "scratch"], capture_output=True, timeout=60, check=False)
            if done.returncode == 0:
                tool("rm", "--all")
                return tool
        raise AssertionError(done.stderr)

    def remove(self) -> None:
        """Remove the storage with all that is in it."""
        self("rm", "--all")
        mounted = self.storage / "root" / self.driver
        subprocess.run(["umount", str(mounted)], capture_output=True, check=False)  # overlay has it mounted on itself
        shutil.rmtree(self.storage)

    def __call__(self, *arguments: str) -> str:
        return run(*self.prefix, *arguments).strip()

    def container(self) -> str:
        """A container of the image, without the volumes that it declares: buildah mixes them up with mounted ones."""
        made = self("from", IMAGE)
        config = json.loads(self("inspect", "--type", "image", IMAGE))["Docker"]["config"]
        self("config", *(f"--volume={place}-" for place in config["Volumes"]), made)
        return made

    def running(
        self,
        container: str,
        *command: str,
        environment: Mapping[str, str] | None = None,
        volumes: Mapping[str, Path] | None = None,
        user: str | None = None,
        hostname: str | None = None,
    ) -> list[str]:
        """The command that runs a command in a container. volumes: what is mounted, by the place in there."""
        options = [f"--env={name}={value}" for name, value in (environment or {}).items()]
        options += [f"--volume={source}:{place}" for place, source in (volumes or {}).items()]
        options += [] if user is None else [f"--user={user}"]
        options += [] if hostname is None else [f"--hostname={hostname}"]
        return [*self.prefix, "run", "--isolation", "chroot", *options, container, "--", *command]

    def build_image(self) -> None:
        """Build the image from the tree, and the base that it stands on."""
        self.storage.mkdir(parents=True, exist_ok=True)
        root = self.storage / "debian"
        packages = "python3,python3-venv,ca-certificates"
        run("debootstrap", "--variant=minbase", f"--include={packages}", "bookworm", str(root))
        base = self("from", "scratch")
        self("add", "--quiet", base, str(root), "/")
        shutil.rmtree(root)
        self("commit", "--quiet", base, BASE)
        # The build installs packages, so it trusts what this machine trusts.
        pip = [f"--env={name}={os.environ[name]}" for name in ("PIP_CERT", "SSL_CERT_FILE") if name in os.environ]
        trusts = ["--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro", *pip]
        base_argument = ["--build-arg", f"BASE={BASE}"]
        file = ["--format", "docker", "-f", str(ROOT / "docker" / "Dockerfile"), "-t", IMAGE, str(ROOT)]
        self("bud", "--isolation", "chroot", *base_argument, *trusts, *file)

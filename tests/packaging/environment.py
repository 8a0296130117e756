"""Clean environments with a built wheel, made in a second and without a package index.

Such an environment has the wheel unpacked, and links to just those distributions of the running interpreter that the
wheel's metadata asks for. Scripts of distributions are not there: programs are run by `python -m`.
"""

from __future__ import annotations

import os
import subprocess
import venv
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.parser import Parser
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

TIMEOUT_S = 240
_ALSO_OF_THIS_TREE = ("PYTHONPATH", "PYTHONSAFEPATH", "PYTHONHOME", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True)
class CleanEnvironment:
    """One environment. distributions: what is linked into it beside the wheel, by normalized name."""

    directory: Path
    distributions: Mapping[str, Distribution]

    @classmethod
    def of(cls, directory: Path, wheel: Path, *extras: str) -> CleanEnvironment:
        """Make the environment that `pip install 'WHEEL[extras]'` would make."""
        venv.create(directory, symlinks=True, with_pip=False)
        made = cls(directory, needed(requirements_of(wheel), extras))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(made.site_packages)
        for each in made.distributions.values():
            for name in top_level(each):
                (made.site_packages / name).symlink_to(Path(str(each.locate_file(name))))
        return made

    @property
    def python(self) -> Path:
        return self.directory / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        (found,) = (self.directory / "lib").glob("python3*/site-packages")
        return found

    @property
    def variables(self) -> dict[str, str]:
        """The variables of this process without those that lead to other packages."""
        return {name: value for name, value in os.environ.items() if name not in _ALSO_OF_THIS_TREE}

    def run(self, *arguments: str | Path, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run Python with these arguments to its end."""
        return subprocess.run(
            [self.python, *arguments],
            cwd=cwd,
            env=self.variables,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )


def requirements_of(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode()).get_all("Requires-Dist", [])


def needed(requirements: Iterable[str], extras: Iterable[str] = ()) -> dict[str, Distribution]:
    """Return the distributions of the running interpreter that these ask for, directly or not, by normalized name."""
    found: dict[str, Distribution] = {}
    waiting, seen = list(_asked(requirements, extras)), set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if (key := (name, frozenset(requirement.extras))) not in seen:
            seen.add(key)
            found[name] = distribution(name)
            waiting += _asked(found[name].requires or (), requirement.extras)
    return found


def _asked(requirements: Iterable[str], extras: Iterable[str]) -> Iterator[Requirement]:
    for requirement in map(Requirement, requirements):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement


def top_level(of: Distribution) -> set[str]:
    """Return what a distribution has in site-packages: packages, modules, and its metadata."""
    tops = {file.parts[0] for file in of.files or ()}
    return {name for name in tops if name not in ("..", "__pycache__")}


def size_bytes(of: Distribution) -> int:
    """Return the size of the files as they come out of the wheel, without what Python compiles of them."""
    return sum(file.size or 0 for file in of.files or ())

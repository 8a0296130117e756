"""Diffs without line numbers, as `docs/contributing.md` and the lists of planted bugs have them.

The unchanged and removed lines of a hunk must stand in the file together, at one place: a diff that does not fit the
tree any more is an error, and no change at another place.
"""

from __future__ import annotations


class BadDiff(AssertionError):
    """A diff that does not fit the tree: it names a file that is not there, or lines that have changed."""


def changed(file: str, text: str, diff: str) -> str:
    """The text of a file behind a diff, whose hunks have a line `@@` between them. Raises BadDiff."""
    for hunk in diff.split("@@\n"):
        lines = [(line[:1] or " ", line[1:]) for line in hunk.splitlines(keepends=True)]
        before = "".join(line or "\n" for sign, line in lines if sign in " -")
        after = "".join(line or "\n" for sign, line in lines if sign in " +")
        if text.count(before) != 1:
            raise BadDiff(f"{file}: these lines stand there {text.count(before)} times, not once:\n{before}")
        text = text.replace(before, after)
    return text

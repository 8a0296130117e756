"""JAAS lines in Kafka's syntax: `module.Class required name="value" other=value;`, as its `JaasConfig` reads them.

A file has them in sections, `Name { module.Class required name="value"; … };`, in the syntax of Java's `ConfigFile`.

The tokens are those of Java's `StreamTokenizer`. A word of a line ends at white space, at a quote, and at one of `;`,
`=` and `/`; the last begins a comment, so that a value with a slash must be quoted. A quoted text ends with its line at
the latest, and knows the escapes of C. An error names the configuration key and the place, and never what stands there:
where a quote is missing, anything may be part of a password.

A word of a file has letters, digits and `._-$*`, and does not begin as a number does: numbers must be quoted, too, and
double quotes alone are quotes. `${name}` in a value of a file stands for a system property of Java.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pykbroker.config.keys import InvalidValue

CONTROL_FLAGS: Final = ("required", "requisite", "sufficient", "optional")

_SINGLE: Final = ";="
_QUOTES: Final = "\"'"
_LINE_ENDS: Final = "\r\n"
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OCTAL: Final = "01234567"
_PROPERTY: Final = re.compile(r"\$\{(?!\{)([^}]*)\}")


class InvalidSections(Exception):
    """The reason why a file is not understood: the line, and nothing that stands there."""


@dataclass(frozen=True, slots=True)
class LoginModule:
    """One entry of a JAAS configuration. module: the Java class that Kafka would load."""

    module: str
    control_flag: str
    options: dict[str, str] = field(repr=False)

    @property
    def class_name(self) -> str:
        """The name of the class without its package."""
        return self.module.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class _Syntax:
    """The syntax of words. is_word: the characters that a word has; not_first: those with which none begins."""

    is_word: Callable[[str], bool]
    not_first: str = ""
    quotes: str = _QUOTES


@dataclass(frozen=True, slots=True)
class _Token:
    """A word, or with `is_sign` one of the signs between words."""

    text: str
    is_sign: bool = False


def parse_jaas(key: str, text: str) -> list[LoginModule]:
    """Read all entries of the text. key: the configuration key that errors name. Raises InvalidValue."""
    tokens = _Tokens(text)
    modules = []
    while (token := tokens.next()) is not None:
        modules.append(_entry(key, token, tokens))
    if not modules:
        raise _invalid(key, "no login module is named; expected is 'module required name=\"value\" ...;'")
    return modules


def parse_one(key: str, text: str) -> LoginModule:
    """Read the one entry that the text must have. Raises InvalidValue."""
    modules = parse_jaas(key, text)
    if len(modules) != 1:
        raise _invalid(key, f"{len(modules)} login modules are named, and one is expected")
    return modules[0]


def parse_sections(text: str, properties: Mapping[str, str]) -> dict[str, tuple[LoginModule, ...]]:
    """Read the sections of a file by their names. Raises InvalidSections.

    properties: Java's system properties.
    """
    tokens = _Tokens(text, _Syntax(_is_word_of_file, not_first="0123456789.-", quotes='"'))
    sections: dict[str, tuple[LoginModule, ...]] = {}
    try:
        while (name := tokens.next()) is not None:
            if name.is_sign:
                raise _invalid("", "the name of a section is expected")
            if name.text in sections:
                raise _invalid("", "a section of this name stands there already")
            sections[name.text] = tuple(_section(tokens, properties))
    except InvalidValue as error:
        raise InvalidSections(f"line {tokens.line}: {error.reason}") from None
    return sections


def _section(tokens: _Tokens, properties: Mapping[str, str]) -> Iterator[LoginModule]:
    """The entries of a section, up to its end."""
    _expect(tokens, "{")
    while (token := tokens.next()) is not None and not _is(token, "}"):
        if token.is_sign:
            raise _invalid("", "a login module, or the end of the section, is expected")
        module = _entry("", token, tokens)
        yield replace(module, options=dict(_expanded(module.options, properties)))
    if token is None:
        raise _invalid("", "the section has no end")
    _expect(tokens, ";")


def _expect(tokens: _Tokens, sign: str) -> None:
    if not _is(tokens.next(), sign):
        raise _invalid("", f"'{sign}' is expected")


def _expanded(options: Mapping[str, str], properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The options with the values of system properties; who names one that is not there may mean something else."""
    for number, (name, text) in enumerate(options.items(), 1):
        if any(each not in properties for each in _PROPERTY.findall(text)):
            raise _invalid("", f"option number {number} of the entry names a system property that nobody has given")
        yield name, _PROPERTY.sub(lambda found: properties[found[1]], text)


def _entry(key: str, module: _Token, tokens: _Tokens) -> LoginModule:
    if module.is_sign:
        raise _invalid(key, f"a login module is expected in front of '{module.text}'")
    flag = tokens.next()
    if flag is None or flag.is_sign or flag.text.lower() not in CONTROL_FLAGS:
        raise _invalid(key, f"a control flag is expected behind the login module: {', '.join(CONTROL_FLAGS)}")
    options: dict[str, str] = {}
    while (name := tokens.next()) is not None and not _is(name, ";"):
        number = len(options) + 1
        if name.is_sign:
            raise _invalid(key, f"option number {number} has no name")
        if not _is(tokens.next(), "=") or (value := tokens.next()) is None or value.is_sign:
            raise _invalid(key, f'option number {number} has no value; expected is name="value"')
        options[name.text] = value.text
    if name is None:
        raise _invalid(key, "the entry must end with a semicolon")
    return LoginModule(module.text, flag.text.lower(), options)


def _is(token: _Token | None, sign: str) -> bool:
    return token is not None and token.is_sign and token.text == sign


def _invalid(key: str, reason: str) -> InvalidValue:
    return InvalidValue(key, "[hidden]", reason)


class _Tokens:
    """The tokens of a text, one after another. syntax: of a line, or of a file."""

    def __init__(self, text: str, syntax: _Syntax | None = None) -> None:
        self._text = text
        self._at = 0
        self._syntax = syntax or _Syntax(_is_word)

    @property
    def line(self) -> int:
        """The number of the line that is being read."""
        return self._text.count("\n", 0, self._at) + 1

    def next(self) -> _Token | None:
        """Return the next token, or None at the end of the text."""
        self._skip_blanks_and_comments()
        if self._at >= len(self._text):
            return None
        char = self._text[self._at]
        if char in self._syntax.quotes:
            self._at += 1
            return _Token("".join(self._quoted(char)))
        is_word = self._syntax.is_word
        if is_word(char) and char not in self._syntax.not_first:
            start = self._at
            while self._at < len(self._text) and is_word(self._text[self._at]):
                self._at += 1
            return _Token(self._text[start : self._at])
        self._at += 1
        return _Token(char, is_sign=True)

    def _skip_blanks_and_comments(self) -> None:
        text = self._text
        while self._at < len(text):
            if text.startswith("/*", self._at):
                end = text.find("*/", self._at + 2)
                self._at = len(text) if end < 0 else end + 2
            elif text[self._at] == "/":
                while self._at < len(text) and text[self._at] not in _LINE_ENDS:
                    self._at += 1
            elif text[self._at] <= " ":
                self._at += 1
            else:
                return

    def _quoted(self, quote: str) -> Iterator[str]:
        """The characters up to the closing quote, which is passed over, or to the end of the line, which is not."""
        while self._at < len(self._text) and (char := self._text[self._at]) not in _LINE_ENDS:
            self._at += 1
            if char == quote:
                return
            yield self._escaped() if char == "\\" else char

    def _escaped(self) -> str:
        """Read what stands behind a backslash: up to three octal digits, or one character."""
        digits = self._text[self._at : self._at + 3]
        most = 3 if digits[:1] <= "3" else 2
        octal = ""
        for digit in digits[:most]:
            if digit not in _OCTAL:
                break
            octal += digit
        if octal:
            self._at += len(octal)
            return chr(int(octal, 8))
        self._at += 1
        return _ESCAPES.get(digits[:1], digits[:1])


def _is_word(char: str) -> bool:
    """Tell whether the character belongs to a word; those from 129 to 159 stand for themselves, as in Kafka."""
    return char > " " and char not in _SINGLE and char not in _QUOTES and char != "/" and not "\x80" < char < "\xa0"


def _is_word_of_file(char: str) -> bool:
    return (char.isascii() and char.isalnum()) or char in "._-$*" or char >= "\xa0"

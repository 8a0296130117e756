"""The flags of `pykbroker acls`, and the entries and filters that they stand for. The model is Kafka's `AclCommand`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from pykbroker.security.acls.entry import AccessControlEntry, EntryFilter
from pykbroker.security.acls.operations import SUPPORTED_OPERATIONS as LISTED_OPERATIONS
from pykbroker.security.acls.operations import Operation, Permission, bits
from pykbroker.security.acls.resources import CLUSTER_NAME, WILDCARD, PatternType, ResourceType

from .command import CommandFailed, exactly_one, reject

PATTERN_TYPES: Final = {
    each.name.lower(): each for each in (PatternType.ANY, PatternType.MATCH, PatternType.LITERAL, PatternType.PREFIXED)
}
OPERATIONS: Final = {"".join(word.title() for word in each.name.split("_")): each for each in Operation if each > 1}
"""Operations by the names that they have in flags: `AlterConfigs`."""

_SUPPORTED: Final = {
    **LISTED_OPERATIONS,
    ResourceType.TRANSACTIONAL_ID: bits((Operation.DESCRIBE, Operation.WRITE, Operation.TWO_PHASE_COMMIT)),
    ResourceType.DELEGATION_TOKEN: bits((Operation.DESCRIBE,)),
    ResourceType.USER: bits((Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS)),
}


class Pattern(NamedTuple):
    """The resources that a flag names."""

    resource_type: ResourceType
    name: str
    type: PatternType

    def __str__(self) -> str:
        """The text that Kafka's tool shows."""
        kind, pattern = self.resource_type.name, self.type.name
        return f"ResourcePattern(resourceType={kind}, name={self.name}, patternType={pattern})"

    @property
    def filter(self) -> EntryFilter:
        return EntryFilter(self.resource_type, self.name, self.type)


@dataclass(frozen=True, slots=True, kw_only=True)
class AclOptions:
    """A field per flag."""

    bootstrap_server: str
    command_config: Path | None
    add: bool = False
    remove: bool = False
    list_: bool = False
    operations: tuple[str, ...] = ()
    allow_principals: tuple[str, ...] = ()
    deny_principals: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    deny_hosts: tuple[str, ...] = ()
    principals: tuple[str, ...] = ()
    producer: bool = False
    consumer: bool = False
    idempotent: bool = False
    cluster: bool = False
    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    transactional_ids: tuple[str, ...] = ()
    delegation_tokens: tuple[str, ...] = ()
    user_principals: tuple[str, ...] = ()
    resource_pattern_type: str = "literal"
    force: bool = False
    as_json: bool = False

    @property
    def pattern_type(self) -> PatternType:
        return PATTERN_TYPES[self.resource_pattern_type.lower()]

    @property
    def patterns(self) -> list[Pattern]:
        """The resources that were named, each once."""
        named = [
            *((ResourceType.TOPIC, name) for name in self.topics),
            *((ResourceType.GROUP, name) for name in self.groups),
            *((ResourceType.TRANSACTIONAL_ID, name) for name in self.transactional_ids),
            *((ResourceType.DELEGATION_TOKEN, name) for name in self.delegation_tokens),
            *((ResourceType.USER, name) for name in self.user_principals),
        ]
        patterns = [Pattern(type_, name.strip(), self.pattern_type) for type_, name in named]
        if self.cluster or self.idempotent:
            patterns.append(Pattern(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL))
        return list(dict.fromkeys(patterns))

    def entries(self) -> dict[Pattern, list[AccessControlEntry]]:
        """The entries of each resource that was named. Raises CommandFailed.

        Without a principal there are none: what is to be removed are all entries of the resource then.
        """
        entries = {}
        for pattern in self.patterns:
            operations = [*self._operations(pattern)]
            entries[pattern] = list(dict.fromkeys(self._of(pattern, operations)))
        return entries

    def _operations(self, pattern: Pattern) -> Iterator[Operation]:
        if not self.producer and not self.consumer:
            for name in self.operations or ("All",):
                yield _operation(pattern.resource_type, name)
            return
        if self.producer:
            yield from _OF_PRODUCERS.get(pattern.resource_type, ())
        if self.consumer:
            yield from _OF_CONSUMERS.get(pattern.resource_type, ())

    def _of(self, pattern: Pattern, operations: list[Operation]) -> Iterator[AccessControlEntry]:
        given = (
            (Permission.ALLOW, self.allow_principals, self.allow_hosts),
            (Permission.DENY, self.deny_principals, self.deny_hosts),
        )
        for permission, principals, hosts in given:
            for principal in principals:
                for host in hosts or (WILDCARD,):
                    for operation in operations:
                        yield AccessControlEntry(
                            pattern.resource_type,
                            pattern.name,
                            pattern.type,
                            principal.strip(),
                            host.strip(),
                            operation,
                            permission,
                        )


_OF_PRODUCERS: Final = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
    ResourceType.CLUSTER: (Operation.IDEMPOTENT_WRITE,),
}
_OF_CONSUMERS: Final = {
    ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
    ResourceType.GROUP: (Operation.READ,),
}


def action_of(options: AclOptions) -> str:
    """The one action that was asked for, once the other flags fit it. Raises CommandFailed."""
    action = exactly_one({"--list": options.list_, "--add": options.add, "--remove": options.remove})
    check(options, action)
    return action


def check(options: AclOptions, action: str) -> None:
    """Raises CommandFailed where the other flags do not fit the action."""
    if options.resource_pattern_type.lower() not in PATTERN_TYPES:
        allowed = ", ".join(PATTERN_TYPES)
        raise CommandFailed(f"--resource-pattern-type must be one of {allowed}, not '{options.resource_pattern_type}'")
    for flag, names in (
        ("--allow-principal", options.allow_principals),
        ("--deny-principal", options.deny_principals),
        ("--principal", options.principals),
        ("--user-principal", options.user_principals),
    ):
        for name in names:
            check_principal(flag, name)
    if action == "--list":
        _check_list(options)
    else:
        _check_change(options, action)


def check_principal(flag: str, text: str) -> tuple[str, str]:
    """The type and the name of a principal such as `User:alice`. Raises CommandFailed."""
    type_, colon, name = text.strip().partition(":")
    if not colon or not type_ or not name:
        raise CommandFailed(f"{flag} expects a principal in format principalType:principalName, not '{text}'")
    return type_, name


def _check_list(options: AclOptions) -> None:
    given = {
        "--producer": options.producer,
        "--consumer": options.consumer,
        "--idempotent": options.idempotent,
        "--operation": options.operations,
        "--allow-principal": options.allow_principals,
        "--deny-principal": options.deny_principals,
        "--allow-host": options.allow_hosts,
        "--deny-host": options.deny_hosts,
        "--force": options.force,
    }
    reject(given, "can be used with --add and --remove only")


def _check_change(options: AclOptions, action: str) -> None:
    reject({"--principal": options.principals}, "can be used with --list only")
    if options.producer or options.consumer:
        given = {
            "--operation": options.operations,
            "--deny-principal": options.deny_principals,
            "--deny-host": options.deny_hosts,
        }
        reject(given, f"cannot be used with {'--producer' if options.producer else '--consumer'}")
    if options.producer and not options.topics:
        raise CommandFailed("With --producer you must specify a --topic")
    if options.idempotent and not options.producer:
        raise CommandFailed("The --idempotent option is only available if --producer is set")
    if options.consumer:
        foreign = not options.producer and (options.cluster or options.transactional_ids)
        if not options.topics or not options.groups or foreign:
            raise CommandFailed(
                "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id "
                "option should be specified."
            )
    if not options.patterns:
        raise CommandFailed(
            "You must provide at least one resource: --topic, --cluster, --group, --transactional-id, "
            "--delegation-token or --user-principal"
        )
    if action == "--add":
        if not options.allow_principals and not options.deny_principals:
            raise CommandFailed("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.")
        if options.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
            raise CommandFailed(
                f"A '--resource-pattern-type' value of '{options.pattern_type.name}' is not valid when adding acls."
            )
    for flag, hosts, principals in (
        ("allow", options.allow_hosts, options.allow_principals),
        ("deny", options.deny_hosts, options.deny_principals),
    ):
        if hosts and not principals:
            raise CommandFailed(f"--{flag}-host needs --{flag}-principal")
    options.entries()


def _operation(resource_type: ResourceType, name: str) -> Operation:
    by_name = {each.lower(): operation for each, operation in OPERATIONS.items()}
    operation = by_name.get(name.strip().lower())
    allowed = _SUPPORTED[resource_type]
    if operation is None or (operation is not Operation.ALL and not allowed >> operation & 1):
        names = ", ".join(each for each, one in OPERATIONS.items() if one is Operation.ALL or allowed >> one & 1)
        raise CommandFailed(f"ResourceType {resource_type.name} only supports operations {names}, not '{name}'")
    return operation

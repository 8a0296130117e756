"""The flags of `pykbroker reassign`, and which of them go together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .command import CommandFailed, exactly_one, reject
from .controller_options import OptionsOfEither

LEAST_THROTTLE_BYTES = 1024


@dataclass(frozen=True, slots=True)
class ReassignOptions(OptionsOfEither):
    """A field per flag, of both forms."""

    generate: bool = False
    execute: bool = False
    verify: bool = False
    list_: bool = False
    cancel: bool = False
    reassignment_json_file: Path | None = None
    topics_to_move_json_file: Path | None = None
    broker_list: str | None = None
    throttle: int | None = None
    replica_alter_log_dirs_throttle: int | None = None
    timeout: int = 10_000
    additional: bool = False
    preserve_throttles: bool = False
    disable_rack_aware: bool = False
    disallow_replication_factor_change: bool = False
    names: tuple[str, ...] = ()
    topic: str | None = None
    replicas: str | None = None
    replication_factor: int | None = None
    all_: bool = False
    output: Path | None = None
    wait: bool = False
    wait_s: float = 0
    yes: bool = False
    as_json: bool = False

    @property
    def plan_file(self) -> Path:
        assert self.reassignment_json_file is not None, "checked before"
        return self.reassignment_json_file


def action_of(options: ReassignOptions) -> str:
    """The one action that was asked for, once the other flags fit it. Raises CommandFailed."""
    action = exactly_one(
        {
            "--generate": options.generate,
            "--execute": options.execute,
            "--verify": options.verify,
            "--cancel": options.cancel,
            "--list": options.list_,
        }
    )
    if action in ("--execute", "--verify", "--cancel") and options.reassignment_json_file is None:
        raise CommandFailed(f"{action} needs --reassignment-json-file")
    if action == "--generate" and (options.topics_to_move_json_file is None or options.broker_list is None):
        raise CommandFailed("--generate needs --topics-to-move-json-file and --broker-list")
    if options.where.asks_controllers and action not in ("--cancel", "--list"):
        raise CommandFailed(f'Option "--bootstrap-controller" can\'t be used with action "{action}"')
    _reject_foreign_flags(action, options)
    return action


def _reject_foreign_flags(action: str, options: ReassignOptions) -> None:
    if action != "--execute":
        only_execute = {
            "--throttle": options.throttle,
            "--replica-alter-log-dirs-throttle": options.replica_alter_log_dirs_throttle,
            "--disallow-replication-factor-change": options.disallow_replication_factor_change,
        }
        reject(only_execute, "can be used with --execute only")
    if action not in ("--execute", "--cancel"):
        reject({"--additional": options.additional}, "can be used with --execute only")
    if action not in ("--verify", "--cancel"):
        reject({"--preserve-throttles": options.preserve_throttles}, "can be used with --verify and --cancel only")
    if action != "--generate":
        only_generate = {
            "--topics-to-move-json-file": options.topics_to_move_json_file,
            "--broker-list": options.broker_list,
            "--disable-rack-aware": options.disable_rack_aware,
        }
        reject(only_generate, "can be used with --generate only")
    if action in ("--generate", "--list"):
        reject({"--reassignment-json-file": options.reassignment_json_file}, f"cannot be used with {action}")

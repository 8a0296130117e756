"""The rows of `pykbroker configs --describe`: Kafka's lines in a pipe, a table with origins and remarks on a terminal.

On a terminal a broker's own configs include what it was started with, which Kafka's tool leaves out. A broker of this
project tells where that stands; of another one the source is known, and not the place.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from pykbroker.client.configs import ResourceType
from pykbroker.config.given_settings import origin_in
from pykbroker.config.texts import WITHOUT_EFFECT
from pykbroker.protocol.config_source import ConfigSource
from pykbroker.protocol.messages.configs import DescribeConfigsResourceResult

from .config_entries import source_name
from .config_options import EntityType
from .output import Column, print_table, stdout_is_terminal

Rows = Sequence[DescribeConfigsResourceResult]


def own_rows(entity: EntityType, name: str, rows: Rows) -> Rows:
    """Those that somebody has set for this entity."""
    if entity.own_source is None:
        return rows
    is_broker = entity.resource_type is ResourceType.BROKER
    if is_broker and name and stdout_is_terminal():
        return [row for row in rows if row.config_source != ConfigSource.DEFAULT_CONFIG]
    own = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG if is_broker and not name else entity.own_source
    return [row for row in rows if row.config_source == own]


def title_of(entity: EntityType, name: str, *, everything: bool) -> str:
    if not name:
        return f"Default configs for {entity.singular}s in the cluster are:"
    kind = "All" if everything else "Dynamic"
    if kind == "Dynamic" and entity.resource_type is ResourceType.BROKER and stdout_is_terminal():
        return f"Configs that are set for {entity.singular} {name} are:"
    return f"{kind} configs for {entity.singular} {name} are:"


def print_rows(rows: Rows, *, explain: bool) -> None:
    if stdout_is_terminal():
        if rows:
            _print_table(rows, explain=explain)
        return
    for row in rows:
        sensitive = "true" if row.is_sensitive else "false"
        click.echo(f"  {row.name}={_value(row.value)} sensitive={sensitive} synonyms={{{_synonyms(row)}}}")
        if explain and row.documentation:
            click.echo(f"    {' '.join(row.documentation.split())}")


def _print_table(rows: Rows, *, explain: bool) -> None:
    columns = [Column("Name"), Column("Value"), Column("From"), Column("Meaning" if explain else "Remark")]
    cells = [
        [
            row.name,
            "[hidden]" if row.is_sensitive else _value(row.value),
            _from(row),
            " ".join((row.documentation or "").split()) if explain else _remark(row),
        ]
        for row in rows
    ]
    if not explain and not any(each[-1] for each in cells):
        columns, cells = columns[:-1], [each[:-1] for each in cells]
    print_table(columns, cells)


def _from(row: DescribeConfigsResourceResult) -> str:
    origin = origin_in(row.documentation) if row.config_source == ConfigSource.STATIC_BROKER_CONFIG else None
    return origin or source_name(row.config_source)


def _remark(row: DescribeConfigsResourceResult) -> str:
    """Return what a broker of this project says of a key that somebody has set in vain."""
    if row.config_source == ConfigSource.DEFAULT_CONFIG or row.documentation is None:
        return ""
    if row.config_type == 0 and row.is_sensitive:
        return "unknown"
    return "no effect" if row.documentation.startswith(WITHOUT_EFFECT) else ""


def _value(value: str | None) -> str:
    return "null" if value is None else value


def _synonyms(row: DescribeConfigsResourceResult) -> str:
    return ", ".join(f"{source_name(one.source)}:{one.name}={_value(one.value)}" for one in row.synonyms)

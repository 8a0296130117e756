"""Requests and responses as they stand in a stream: size, header, body, and whatever is behind the body."""

# construct's types are objects made by decorators, which pyright takes for the classes and functions behind them.
# pyright: reportOperatorIssue=false, reportArgumentType=false, reportAssignmentType=false
# pyright: reportOptionalMemberAccess=false

from __future__ import annotations

from typing import Final

import construct as c

from ..api_keys import ApiKey, request_type, response_type
from .messages import describe
from .values import STRING, tagged_section

REQUEST_START: Final = c.Struct("api_key" / c.Int16sb, "api_version" / c.Int16sb)
"""What must be read of a request to know how the rest is to be read."""


def request_body(api_key: int, version: int) -> c.Construct:
    """A request without its size. Raises KeyError for an unknown API key."""
    request = request_type(api_key)
    flexible = request.__schema__.flexible.includes(version)
    return c.Struct(
        "api_key" / c.Int16sb,
        "api_version" / c.Int16sb,
        "correlation_id" / c.Int32sb,
        "client_id" / STRING,
        "header_tags" / (tagged_section({}) if flexible else c.Computed(None)),
        "body" / describe(request, version),
        "garbage" / c.GreedyBytes,
    )


def response_body(api_key: int, version: int) -> c.Construct:
    """A response without its size, to a request of this API key and version."""
    response = response_type(api_key)
    flexible = response.__schema__.flexible.includes(version) and api_key != ApiKey.API_VERSIONS
    return c.Struct(
        "correlation_id" / c.Int32sb,
        "header_tags" / (tagged_section({}) if flexible else c.Computed(None)),
        "body" / describe(response, version),
        "garbage" / c.GreedyBytes,
    )


FRAME: Final = c.Prefixed(c.Int32sb, c.GreedyBytes)

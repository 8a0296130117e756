"""The subjects of each scene's sequences: stories that they are made of, and APIs of which any request is drawn."""

from __future__ import annotations

from typing import Final, NamedTuple

from pykbroker.protocol.api_keys import ApiKey

from .nodes import GROUPS, GROUPS_RIGHTS, PLAIN, RIGHTS
from .quorum_stories import QUORUM_STORIES, TELEMETRY
from .sequences import Sequence, Step
from .share_stories import SHARE_RIGHTS, SHARE_STORIES
from .stories import CLASSIC_GROUP, CONSUMER_GROUP, STORIES, TOPICS_STORY, UPGRADED_GROUP, on_every_version
from .streams_stories import STREAMS_RIGHTS, STREAMS_STORIES


class Subject(NamedTuple):
    """stories: one that stands there more than once is drawn more often. apis: beside those of every scene."""

    stories: tuple[tuple[Step, ...], ...]
    apis: tuple[ApiKey, ...] = ()


_GROUP_APIS: Final = (
    *(ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE) * 3,
    *(ApiKey.STREAMS_GROUP_HEARTBEAT,) * 4,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.STREAMS_GROUP_DESCRIBE,
    *(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.DELETE_SHARE_GROUP_OFFSETS) * 2,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
)
_OTHER_GROUPS: Final = (CLASSIC_GROUP, CONSUMER_GROUP, UPGRADED_GROUP)
_OF_GROUPS: Final = (*SHARE_STORIES, *SHARE_STORIES, *STREAMS_STORIES, *STREAMS_STORIES, *_OTHER_GROUPS)
SUBJECTS: Final = {
    PLAIN: Subject(STORIES),
    RIGHTS: Subject(STORIES),
    GROUPS: Subject((*_OF_GROUPS, *QUORUM_STORIES, TELEMETRY), _GROUP_APIS),
    GROUPS_RIGHTS: Subject((SHARE_RIGHTS, STREAMS_RIGHTS), _GROUP_APIS),
}
"""By scene."""


def directed_of(scene: str) -> list[Sequence]:
    """Return each story once for each version."""
    stories = SUBJECTS[scene].stories
    once = [each for at, each in enumerate(stories) if each not in stories[:at]]
    versions = [steps for story in once for steps in on_every_version(story)]
    return [Sequence(f"s{number:05d}", (*TOPICS_STORY, *steps)) for number, steps in enumerate(versions, 1)]

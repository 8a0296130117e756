"""UpdateFeatures: a cluster's features move to other levels (KIP-584, KIP-778), all that are asked for or none.

The model is Kafka's `FeatureControlManager`. metadata.version goes down only to a level above which nothing has changed
in the metadata, since what a newer level brought cannot be taken out of the log; nobody can force it. kraft.version is
raft's, and what is written of it is up to the driver.
"""

from __future__ import annotations

from typing import Final

from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.brokers import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from pykbroker.protocol.messages.metadata_records import FeatureLevelRecord
from pykbroker.protocol.schema import Message

from . import min_isr
from .controller_state import ControllerState
from .features import METADATA_VERSIONS_WITH_CHANGES, REGISTERED_FEATURES, SUPPORTED_FEATURES, feature_level
from .image import METADATA_VERSION

KRAFT_VERSION: Final = "kraft.version"
OFFERED: Final = SUPPORTED_FEATURES | {KRAFT_VERSION: REGISTERED_FEATURES[KRAFT_VERSION]}
"""What a level can be asked for, with the least and the greatest."""

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
_DOWNGRADES: Final = (SAFE_DOWNGRADE, UNSAFE_DOWNGRADE)


def update_features(
    state: ControllerState, request: UpdateFeaturesRequest
) -> tuple[list[Message], UpdateFeaturesResponse]:
    """A feature at level 0 is not finalized any more. What is at the level already is left as it is."""
    levels: dict[str, int] = {}
    try:
        for update in request.feature_updates:
            _check(state, update)
            levels.setdefault(update.feature, update.max_version_level)
    except ApiError as error:
        message = f"The update failed for all features since the following feature had an error: {error.message}"
        return [], UpdateFeaturesResponse(error_code=error.code, error_message=message)
    records: list[Message] = [
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level in levels.items()
        if name != KRAFT_VERSION and feature_level(state.image, name) != level
    ]
    records = [*min_isr.when_enabled(state, records), *records]
    text = ErrorCode.NONE.name  # Kafka's name of no error stands where the text of one would
    results = [UpdatableFeatureResult(feature=name, error_message=text) for name in levels]
    return [] if request.validate_only else records, UpdateFeaturesResponse(error_message=None, results=results)


def _check(state: ControllerState, update: FeatureUpdateKey) -> None:
    """Raises ApiError."""
    name, level = update.feature, update.max_version_level
    current = state.kraft_version if name == KRAFT_VERSION else feature_level(state.image, name)
    if update.upgrade_type not in (UPGRADE, *_DOWNGRADES):
        raise _invalid(update, "The controller does not support the given upgrade type.")
    if level == 0 and current == 0 and name not in OFFERED:
        raise _invalid(update, f"Feature {name} not found.")
    if level < 0:
        raise _invalid(update, "A feature version cannot be less than 0.")
    if name not in OFFERED:
        raise _invalid(update, f"Local controller {state.node_id} does not support this feature.")
    low, high = OFFERED[name]
    if not low <= level <= high:
        reason = f"Local controller {state.node_id} only supports versions {low}-{high}"
        raise _invalid(update, reason)
    if level > current and update.upgrade_type in _DOWNGRADES:
        raise _invalid(update, "Can't downgrade to a newer version.")
    if level < current and update.upgrade_type == UPGRADE:
        reason = (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
        raise _invalid(update, reason)
    if name == KRAFT_VERSION and level < current:
        raise _invalid(update, f"Version {current} cannot be downgraded.")
    if level != current:
        _check_brokers(state, update)
    if name == METADATA_VERSION:
        _check_downgrade(update, current)


def _check_downgrade(update: FeatureUpdateKey, current: int) -> None:
    """Kafka refuses what it calls an unsafe downgrade of the metadata as well (KAFKA-13896)."""
    level = update.max_version_level
    if not any(level < each <= current for each in METADATA_VERSIONS_WITH_CHANGES):
        return
    reason = "Refusing to perform the requested downgrade because it might delete metadata information."
    if update.upgrade_type == UNSAFE_DOWNGRADE:
        reason = "Unsafe metadata downgrade is not supported in this version."
    raise ApiError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Unsupported metadata.version downgrade from {current} to {level}. {reason}",
    )


def _check_brokers(state: ControllerState, update: FeatureUpdateKey) -> None:
    """Every registered broker and controller must be able to work at the new level."""
    if update.feature == KRAFT_VERSION:
        return
    for broker in state.image.brokers.values():
        low, high = broker.features.get(update.feature, (0, 0))
        if not low <= update.max_version_level <= high:
            raise _invalid(update, f"Broker {broker.id} only supports versions {low}-{high}")
    for controller in state.image.controllers.values():
        low, high = controller.features.get(update.feature, (0, 0))
        if controller.id != state.node_id and not low <= update.max_version_level <= high:
            raise _invalid(update, f"Controller {controller.id} only supports versions {low}-{high}")
    for node_id in state.config.quorum_voters:
        if node_id != state.node_id and node_id not in state.image.controllers:
            raise _invalid(update, f"controller {node_id} has not registered, and may not support this feature")


def _invalid(update: FeatureUpdateKey, reason: str) -> ApiError:
    message = f"Invalid update version {update.max_version_level} for feature {update.feature}. {reason}"
    return ApiError(ErrorCode.INVALID_UPDATE_VERSION, message)

"""Configuration in Kafka's property names: what keys there are, what they allow, and one node's values.

- `broker`: `BrokerConfig`, one node's values, typed; `properties` reads the file.
- `keys`: what a key is, its type and what it allows; `broker_keys`, `topic_keys`, `group_keys`, `client_metrics_keys`:
  the keys of Kafka; `own_keys`: those that pykbroker has besides.
- `listener_keys`: keys that are set for one listener.
- Rules among keys: `listeners`, `roles`, `consumer_groups`, `group_bounds`, `streams_groups`; `offset_reset`: where
  share groups begin.
- `cluster_plan`: nodes, ports and properties of a cluster on this host.
- `client_port`, `development`: what flags of the start stand for.
- `unserved_keys`: keys that Kafka acts on and this broker does not.
"""

from .broker import BrokerConfig
from .broker_keys import broker_keys
from .group_keys import check_group_configs, group_keys
from .keys import ConfigKey, ConfigurationError, InvalidValue
from .listener_keys import is_of_a_listener, key_of_listener
from .listeners import ListenerConfig, Listeners
from .own_keys import node_keys, own_keys
from .topic_keys import check_topic_configs, topic_keys
from .unserved_keys import check_served, given_without_effect, unserved

__all__ = [
    "BrokerConfig",
    "ConfigKey",
    "ConfigurationError",
    "InvalidValue",
    "ListenerConfig",
    "Listeners",
    "broker_keys",
    "check_group_configs",
    "check_served",
    "check_topic_configs",
    "given_without_effect",
    "group_keys",
    "is_of_a_listener",
    "key_of_listener",
    "node_keys",
    "own_keys",
    "topic_keys",
    "unserved",
]

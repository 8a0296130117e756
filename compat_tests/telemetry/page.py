"""What a broker of this project shows on `/metrics` of its clients."""

import re
import urllib.request

from prometheus_client.openmetrics.parser import text_string_to_metric_families as strictly_parsed
from prometheus_client.samples import Sample

from compat_tests.brokers import Broker
from compat_tests.waiting import until

OPEN_METRICS = "application/openmetrics-text; version=1.0.0"
TIMEOUT_S = 60


class Page:
    """The page of one broker, whose log says where it is."""

    def __init__(self, broker: Broker) -> None:
        until(lambda: "metrics and health at http://" in broker.log_text(), "the page is there")
        found = re.search(r"metrics and health at (http://\S+)/", broker.log_text())
        assert found is not None
        self._url = f"{found[1]}/metrics"

    def samples(self) -> list[Sample]:
        """All that is there, read as strictly as OpenMetrics wants it."""
        request = urllib.request.Request(self._url, headers={"Accept": OPEN_METRICS})
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            families = list(strictly_parsed(answer.read().decode()))
        return [sample for family in families for sample in family.samples]

    def of_client(self, client_id: str) -> dict[str, list[Sample]]:
        """What a client of this id has pushed, by name."""
        found: dict[str, list[Sample]] = {}
        for sample in self.samples():
            if sample.labels.get("client_id") == client_id:
                found.setdefault(sample.name, []).append(sample)
        return found

    def value(self, name: str) -> float:
        return next(sample.value for sample in self.samples() if sample.name == name)

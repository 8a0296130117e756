"""Apache Kafka's own load tools, run in a JVM each, with what they print turned into figures."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass


class ToolFailed(RuntimeError):
    """The tool ended with an error, or printed no figures."""


@dataclass(frozen=True, slots=True)
class JavaTools:
    """java: the runtime's command. class_path: Apache Kafka's jars."""

    java: str
    class_path: str

    def command(self, main_class: str, *arguments: str, heap: str) -> list[str]:
        """heap: the most that the JVM takes, as `256M`."""
        return [self.java, f"-Xmx{heap}", "-cp", self.class_path, main_class, *arguments]

    def run(self, main_class: str, *arguments: str) -> str:
        """What it prints. main_class: or the path of a program's source file, where the runtime is a JDK's."""
        command = self.command(main_class, *arguments, heap="1G")
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            raise ToolFailed(f"{main_class} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def produce(self, bootstrap: str, topic: str, records: int, record_size: int, config: Mapping[str, str]) -> float:
        """ProducerPerformance without a throttle; returns MB/s, as the tool counts them (1 MB = 2**20 bytes)."""
        properties = [f"{key}={value}" for key, value in config.items()]
        output = self.run(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--bootstrap-server", bootstrap, "--topic", topic, "--throughput", "-1"),
            *("--num-records", str(records), "--record-size", str(record_size)),
            *(["--command-property", *properties] if properties else []),
        )
        # The last line of figures is the total; those before are the windows of five seconds.
        totals = re.findall(r"records sent, [\d.,]+ records/sec \(([\d.,]+) MB/sec\)", output)
        if not totals:
            raise ToolFailed(f"ProducerPerformance printed no total:\n{output}")
        return float(totals[-1].replace(",", ""))

    def end_to_end_latency(self, bootstrap: str, topic: str, records: int, record_size: int) -> tuple[float, float]:
        """EndToEndLatency with acks=all; returns p50 and p99 in ms."""
        output = self.run(
            "org.apache.kafka.tools.EndToEndLatency", bootstrap, topic, str(records), "all", str(record_size)
        )
        found = re.search(r"50th = ([\d.]+), 99th = ([\d.]+)", output)
        if not found:
            raise ToolFailed(f"EndToEndLatency printed no percentiles:\n{output}")
        return float(found.group(1)), float(found.group(2))

    def share_consume(self, bootstrap: str, topic: str, group: str, records: int, consumers: int) -> float:
        """ShareConsumerPerformance; returns records/s, from the first consumer's start on."""
        output = self.run(
            "org.apache.kafka.tools.ShareConsumerPerformance",
            *("--bootstrap-server", bootstrap, "--topic", topic, "--group", group, "--hide-header"),
            *("--num-records", str(records), "--threads", str(consumers), "--timeout", "60000"),
        )
        # start.time, end.time, data.consumed.in.MB, MB.sec, nMsg.sec, data.consumed.in.nMsg, fetch.time.ms
        figures = output.strip().splitlines()[-1].split(", ")
        if "WARNING" in output or len(figures) != 7:
            raise ToolFailed(f"ShareConsumerPerformance did not read all records:\n{output}")
        return float(figures[4])

    def configure_group(self, bootstrap: str, group: str, config: Mapping[str, str]) -> None:
        """ConfigCommand for a group."""
        changes = ",".join(f"{key}={value}" for key, value in config.items())
        self.run(
            "kafka.admin.ConfigCommand",
            *("--bootstrap-server", bootstrap, "--entity-type", "groups", "--entity-name", group),
            *("--alter", "--add-config", changes),
        )

"""The driver's side of a job that writes: which task has which partitions, what they tell, and what is left behind."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from pykbroker.client.cluster import Cluster
from pykbroker.client.errors import ClientError
from pykbroker.client.groups import delete_group

from ..errors import BadOptions, TakenOver, WriteFailed
from ..python_tasks import ARROW
from ..small_tables import small_table
from ..source import Source, ask
from .job import COLUMNS, OWN_PROPERTIES, WRITTEN_SCHEMA, WriteJob, Written
from .offset_syncs import CopyPosition
from .task import write_batches
from .transactional import TAKEN_OVER, take_over

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PACKAGES = ("confluent_kafka", *ARROW)
_BATCH_BYTES = 16 << 20
_THREADS = 8
_TASKS_OF_A_CORE = 4


def check_properties(job: WriteJob) -> None:
    """Raises BadOptions where librdkafka does not take the properties."""
    from confluent_kafka import KafkaException, Producer

    own = sorted(OWN_PROPERTIES & set(job.properties))
    if own:
        raise BadOptions(f"The producers' property {own[0]} is not to be chosen")
    some = next(iter(job.routes.values()), None)
    try:
        Producer(job.producer_properties(some.transactions if some is not None else None))
    except KafkaException as error:
        raise BadOptions(f"The producers cannot begin: {error.args[0].str()}") from None


def fence(job: WriteJob, *, anew: bool = False) -> dict[int, CopyPosition]:
    """End the transactions that earlier runs have left, and whoever would go on with them; the positions by route.

    anew: positions of other runs do not count. Raises WriteFailed.
    """
    with ThreadPoolExecutor(_THREADS) as threads:
        positions = threads.map(partial(take_over, job, anew=anew), job.routes.values())
        return dict(zip(job.routes, positions, strict=True))


def forget(job: WriteJob, target: Source) -> None:
    """Delete the groups of a job that is done. What cannot be deleted expires with its offsets."""
    names = {route.transactions.group for route in job.routes.values() if route.transactions is not None}
    if not names:
        return

    async def question(cluster: Cluster) -> None:
        for name in sorted(names):
            with suppress(ClientError):
                await delete_group(cluster, name)

    ask(target, question)


class TopicWriter:
    """Batches of records, one job of Spark each."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._seats: dict[int, list[int]] = {}
        spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", _BATCH_BYTES)

    def tasks_of(self, loads: Mapping[int, int], *, at_once: bool) -> dict[int, int]:
        """The number of a task for each route. loads: records by route. at_once: no more tasks than cores, so that none
        of them waits for another.
        """
        cores = self._spark.sparkContext.defaultParallelism
        tasks = [(0, number) for number in range(min(len(loads), cores if at_once else cores * _TASKS_OF_A_CORE))]
        found = {}
        for route, load in sorted(loads.items(), key=lambda each: -each[1]):
            least, number = heapq.heappop(tasks)
            found[route] = number
            heapq.heappush(tasks, (least + load, number))
        return found

    def write(self, job: WriteJob, records: DataFrame, tasks: Mapping[int, int]) -> list[Written]:
        """Write the records, which have the columns `COLUMNS` and no order. Raises WriteFailed."""
        return self.write_in_order(job, self.placed(records, tasks).sortWithinPartitions("route", "offset"))

    def write_in_order(self, job: WriteJob, records: DataFrame) -> list[Written]:
        """Write the records, of which each task has those of a route in one piece and in order. Raises WriteFailed."""
        rows = records.select(*COLUMNS)
        found = rows.mapInArrow(partial(write_batches, job), WRITTEN_SCHEMA).collect()
        written = [Written(*row) for row in found]
        for each in written:
            if each.failure is not None:
                error = TakenOver if each.failure == TAKEN_OVER else WriteFailed
                raise error(f"Records cannot be written: {each.failure}")
        return written

    def placed(self, records: DataFrame, tasks: Mapping[int, int]) -> DataFrame:
        """The records of each route in its task."""
        from pyspark.sql.functions import broadcast

        count = max(tasks.values()) + 1
        seats = self._seats_of(count)
        places = small_table(
            self._spark, ((route, seats[number]) for route, number in tasks.items()), "route INT, seat BIGINT"
        )
        return records.join(broadcast(places), "route").repartition(count, "seat")

    def _seats_of(self, count: int) -> list[int]:
        """Numbers that Spark's hash brings to the tasks 0, 1, 2 …, so that each of them has its own partitions."""
        if count not in self._seats:
            found: dict[int, int] = {}
            size = 64 * count
            while len(found) < count:
                numbers = self._spark.range(size).selectExpr("id", f"PMOD(HASH(id), {count}) AS place")
                found = {
                    row["place"]: row["id"]
                    for row in numbers.groupBy("place").agg({"id": "min"}).toDF("place", "id").collect()
                }
                size *= 4
            self._seats[count] = [found[place] for place in range(count)]
        return self._seats[count]

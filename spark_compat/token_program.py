"""A Spark that reads with a delegation token that it has obtained itself: `python -m spark_compat.token_program`.

It calls the provider that Spark's own start on a cluster calls, with the same settings. Standard input has JSON: the
topic, a directory to work in, the connector's jars, and the settings of the cluster without their prefix; the last line
of standard output says how many tokens and records there were.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from spark_compat.session import open_session
from spark_compat.streams import read_batch


def main() -> None:
    told = json.load(sys.stdin)
    clusters: dict[str, str] = told["clusters"]
    spark = open_session(Path(told["work"]), cores=1, jars=told["jars"])
    context: Any = spark.sparkContext
    conf = context._jsc.sc().conf()
    for name, value in clusters.items():
        conf.set(f"spark.kafka.clusters.tested.{name}", value)
    security = context._jvm.org.apache.hadoop.security
    credentials = security.Credentials()
    provider = context._jvm.org.apache.spark.kafka010.KafkaDelegationTokenProvider()
    provider.obtainDelegationTokens(context._jsc.hadoopConfiguration(), conf, credentials)
    security.UserGroupInformation.getCurrentUser().addCredentials(credentials)
    trusted = {f"kafka.{name}": value for name, value in clusters.items() if name.startswith("ssl.")}
    records = read_batch(spark, clusters["auth.bootstrap.servers"], told["topic"], **trusted).select("value").collect()
    sys.stdout.write(json.dumps({"tokens": credentials.numberOfTokens(), "records": len(records)}) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()

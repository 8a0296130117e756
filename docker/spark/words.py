"""Write words to a topic and count them there, by Spark: the job of docker/compose-spark.yaml."""

import os

from pyspark.sql import SparkSession

TOPIC = "words"
WORDS = ("broker", "topic", "partition", "offset", "broker")

spark = SparkSession.builder.appName("words").getOrCreate()
servers = os.environ["BOOTSTRAP_SERVERS"]
words = spark.createDataFrame([(word,) for word in WORDS], "value string")
words.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", TOPIC).save()

records = spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", TOPIC).load()
records.selectExpr("CAST(value AS string) AS word").groupBy("word").count().orderBy("word").show()
spark.stop()

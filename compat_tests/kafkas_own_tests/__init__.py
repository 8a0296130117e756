"""Apache Kafka's own integration tests, run on pykbroker: `make kafka-tests`.

Apache Kafka publishes its tests as jars. They start brokers in their own JVM through two classes; `java/` has classes
of the same names, which stand first on the class path and start every node as a process of the broker under test:

- `org.apache.kafka.common.test.KafkaClusterTestKit` is behind `@ClusterTest`, and the clusters of Streams', Connect's
  and MirrorMaker's tests: brokers and controllers are processes, and the applications stay in the JVM of the tests.
- `kafka.server.KRaftQuorumImplementation` is behind `QuorumTestHarness` and the older tests that are based on it:
  brokers are processes, the controller stays Apache Kafka's own, in the JVM of the tests.

`QuorumTestHarness` is changed when the harness is built (`ChangedClasses`), and formats with the released
metadata.version instead of the next one; the test kit does the same. What a test asks of a broker's objects is answered
from outside where that is possible: by Metadata of this very broker, its files, its configuration. Where it is not, the
test is *aborted*. Of metrics there are those that a node's log tells (`KnownMetrics`), of throttling what the throttled
clients were told (`KnownThrottling`), and of unclean elections those in the metadata log (`KnownElections`).

Security that tests have in their JVM becomes properties of the process (`ProcessSecurity`): sections of a JAAS file are
lines of listeners; a principal builder that gives a listener one user at a time is SASL_PLAINTEXT behind a port that
logs in as that user, and one that reads certificates is `ssl.principal.mapping.rules`. Where a test's listeners are
closed to the harness, a broker has one more to answer what it is asked.

The same tests with processes of Apache Kafka tell what is the harness's fault; that is recorded in `recorded/`. What
differs for a reason stands in `known_differences.toml`, and `docs/conformance.md` has the table of both.
"""

"""State machines: random sequences of requests, sent to a broker and told to a model of it, step by step.

Hypothesis chooses the steps (`RuleBasedStateMachine`), and prints the shortest sequence it finds where an answer is not
the model's. The models are written from Kafka's rules and know nothing of pykbroker's code; Apache Kafka is the
referee, on which the same machines run (`make referee`). One machine a subject:

- `test_logs`: topics, batches of all kinds, offsets, fetch sessions, deletions;
- `test_transactions`: transactional ids, their epochs, markers, what readers of committed records see;
- `test_classic_groups`, `test_consumer_groups`: members of both protocols, committed offsets;
- `test_topics_and_configs`: what administrators ask for;
- `test_restarts`: all that is durable, through kill -9 and clean stops;
- `test_stock_client`: librdkafka's producers, transactions and consumers.

What a broker does after its answer, such as the markers of a transaction, is waited for as a condition. Nothing is a
matter of time, so that a sequence runs the same way again: topics keep their records for ever, members and
transactions have minutes.

`PYKBROKER_HYPOTHESIS=ci` tries more sequences, and other ones in each run; `thorough` many more.
"""

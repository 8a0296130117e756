"""KRaft consensus in Kafka's dialect, as a pure state machine: step, ready, advance, next_deadline_ms."""

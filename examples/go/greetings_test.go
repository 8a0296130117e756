package example

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const topic = "greetings"

func TestGroupReadsWhatWasProducedAndGoesOnWhereItWas(t *testing.T) {
	address := startBroker(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client := newClient(t, address)
	if _, err := kadm.NewClient(client).CreateTopic(ctx, 3, 1, nil, topic); err != nil {
		t.Fatal(err)
	}

	produce(ctx, t, client, "hello", "good morning", "good night")
	if read := read(ctx, t, address, 3); !slices.Equal(read, []string{"good morning", "good night", "hello"}) {
		t.Errorf("the group has read %q", read)
	}

	produce(ctx, t, client, "welcome")
	if read := read(ctx, t, address, 1); !slices.Equal(read, []string{"welcome"}) {
		t.Errorf("the group has read %q", read)
	}
}

func newClient(t *testing.T, address string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(address))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func produce(ctx context.Context, t *testing.T, client *kgo.Client, values ...string) {
	t.Helper()
	for _, value := range values {
		record := &kgo.Record{Topic: topic, Key: []byte(value), Value: []byte(value)}
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// read returns the next values of the group, sorted: partitions are read in no certain order.
func read(ctx context.Context, t *testing.T, address string, count int) []string {
	t.Helper()
	client := newClient(t, address,
		kgo.ConsumerGroup("readers"),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
	)
	defer client.Close()
	var values []string
	for len(values) < count {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(record *kgo.Record) { values = append(values, string(record.Value)) })
	}
	if err := client.CommitUncommittedOffsets(ctx); err != nil {
		t.Fatal(err)
	}
	slices.Sort(values)
	return values
}

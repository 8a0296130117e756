package main

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type fetchOptions struct {
	MaxBytes   int32 `help:"Of a partition in an answer." default:"1048576"`
	Partitions int   `help:"In a request." default:"1"`
}

const (
	fetchVersion     = 12
	fetchWholeBytes  = 50 << 20
	lastDeltaAt      = 23
	recordCountAt    = 57
	fetchWaitMillis  = 500
	wholeBatchHeader = 61
)

// reader is one connection, which reads some partitions from their starts to their ends, and begins again.
type reader struct {
	*conn
	topic      string
	partitions []int32
	offsets    map[int32]int64
	maxBytes   int32
}

func (r *reader) request() *kmsg.FetchRequest {
	request := kmsg.NewPtrFetchRequest()
	request.Version = fetchVersion
	request.MaxWaitMillis = fetchWaitMillis
	request.MinBytes = 0
	request.MaxBytes = fetchWholeBytes
	request.SessionEpoch = -1
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic = r.topic
	for _, index := range r.partitions {
		partition := kmsg.NewFetchRequestTopicPartition()
		partition.Partition = index
		partition.FetchOffset = r.offsets[index]
		partition.PartitionMaxBytes = r.maxBytes
		topic.Partitions = append(topic.Partitions, partition)
	}
	request.Topics = append(request.Topics, topic)
	return request
}

// ask fetches until the time is over.
func (r *reader) ask(_ *options, count *counter) error {
	var response kmsg.FetchResponse
	response.SetVersion(fetchVersion)
	for number := int32(0); !count.over(); number++ {
		frame := frameOf(r.request())
		renumber(frame, number)
		began := time.Now()
		if _, err := r.Write(frame); err != nil {
			return err
		}
		if err := r.receive(number, &response); err != nil {
			return err
		}
		batches, records, bytes, err := r.take(&response)
		if err != nil {
			return err
		}
		before := count.requests
		count.add(time.Since(began), 1, batches, bytes)
		if count.requests != before {
			count.records += records
		}
	}
	return nil
}

// take goes on behind what has come; a partition that has come to its end begins again.
func (r *reader) take(response *kmsg.FetchResponse) (batches, records, size int64, err error) {
	if err := kerr.ErrorForCode(response.ErrorCode); err != nil {
		return 0, 0, 0, err
	}
	for _, topic := range response.Topics {
		for _, partition := range topic.Partitions {
			if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
				return 0, 0, 0, fmt.Errorf("partition %d: %w", partition.Partition, err)
			}
			size += int64(len(partition.RecordBatches))
			next := r.offsets[partition.Partition]
			for rest := partition.RecordBatches; len(rest) >= wholeBatchHeader; {
				whole := lengthOver + int(binary.BigEndian.Uint32(rest[8:]))
				if whole > len(rest) {
					break
				}
				next = int64(binary.BigEndian.Uint64(rest)) + int64(binary.BigEndian.Uint32(rest[lastDeltaAt:])) + 1
				records += int64(binary.BigEndian.Uint32(rest[recordCountAt:]))
				batches++
				rest = rest[whole:]
			}
			if partition.HighWatermark == 0 {
				return 0, 0, 0, fmt.Errorf("partition %d has no records", partition.Partition)
			}
			if len(partition.RecordBatches) > 0 && next == r.offsets[partition.Partition] {
				return 0, 0, 0, fmt.Errorf("partition %d: no whole batch at offset %d", partition.Partition, next)
			}
			if next >= partition.HighWatermark {
				next = 0
			}
			r.offsets[partition.Partition] = next
		}
	}
	return batches, records, size, nil
}

func fetch(opts *options) (*given, error) {
	places, err := lookUp(opts)
	if err != nil {
		return nil, err
	}
	var workers []worker
	for number := range opts.Clients {
		where := places[number%len(places)]
		if opts.Fetch.Partitions > len(where.partitions) {
			return nil, fmt.Errorf("%d partitions of %d that a broker leads", opts.Fetch.Partitions, len(where.partitions))
		}
		c, err := dial(where.address)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		r := &reader{conn: c, topic: where.topic, offsets: map[int32]int64{}, maxBytes: opts.Fetch.MaxBytes}
		for i := range opts.Fetch.Partitions {
			index := (number*opts.Fetch.Partitions + i) % len(where.partitions)
			r.partitions = append(r.partitions, where.partitions[index])
		}
		workers = append(workers, r.ask)
	}
	return measure(opts, workers)
}

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type produceOptions struct {
	Records       int    `help:"In a batch." default:"1"`
	Size          int    `help:"Bytes of a record's value." default:"100"`
	Batches       int    `help:"In a request, each for another partition." default:"1"`
	InFlight      int    `help:"Requests that a connection has under way." default:"5"`
	Acks          int16  `help:"-1, 0 or 1." default:"1"`
	Codec         string `help:"none, gzip, snappy, lz4 or zstd." default:"none"`
	MostBytes     int64  `help:"Of all requests, the warm-up's too: then the run ends. 0: no end but the time." default:"0"`
	VaryPartition bool   `help:"Each request is for the next partitions of the topic." default:"true" negatable:""`
}

const produceVersion = 9

// mark is a partition index that stands in an encoded request until the real one is known.
const mark = 0x5eed0000

// producer is one connection, with a request that it sends again and again.
type producer struct {
	*conn
	frame      []byte
	indexes    []int // where in the frame the partitions' indexes stand
	partitions []int32
	next       int
	codec      string
}

func newProducer(opts *options, where *place, number int) (*producer, error) {
	given := opts.Produce
	if given.Batches > len(where.partitions) {
		return nil, fmt.Errorf("%d batches for %d partitions of a broker", given.Batches, len(where.partitions))
	}
	c, err := dial(where.address)
	if err != nil {
		return nil, err
	}
	encoded, err := batch(values(given.Records, given.Size, int64(number)), given.Codec, nowMillis())
	if err != nil {
		return nil, err
	}
	request := kmsg.NewPtrProduceRequest()
	request.Version = produceVersion
	request.Acks = given.Acks
	request.TimeoutMillis = int32(answerTimeout.Milliseconds())
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic = where.topic
	for i := range given.Batches {
		partition := kmsg.NewProduceRequestTopicPartition()
		partition.Partition = int32(mark + i)
		partition.Records = encoded
		topic.Partitions = append(topic.Partitions, partition)
	}
	request.Topics = append(request.Topics, topic)
	p := &producer{conn: c, frame: frameOf(request), partitions: where.partitions, next: number * given.Batches}
	for i := range given.Batches {
		at := bytes.Index(p.frame, binary.BigEndian.AppendUint32(nil, uint32(mark+i)))
		p.indexes = append(p.indexes, at)
	}
	p.aim()
	return p, nil
}

// aim has the request go to the next partitions.
func (p *producer) aim() {
	for _, at := range p.indexes {
		index := p.partitions[p.next%len(p.partitions)]
		binary.BigEndian.PutUint32(p.frame[at:], uint32(index))
		p.next++
	}
}

// ask sends requests until a time, always as many under way as it may have, and counts what is answered after the
// warm-up.
func (p *producer) ask(opts *options, count *counter) error {
	given := opts.Produce
	sent := make([]time.Time, 0, given.InFlight)
	var asked, answered int32
	var response kmsg.ProduceResponse
	response.SetVersion(produceVersion)
	for !count.over() || len(sent) > 0 {
		if len(sent) < given.InFlight && !count.over() {
			if !count.budget.take(int64(len(p.frame))) {
				continue
			}
			if given.VaryPartition {
				p.aim()
			}
			renumber(p.frame, asked)
			asked++
			began := time.Now()
			if _, err := p.Write(p.frame); err != nil {
				return err
			}
			if given.Acks != 0 {
				sent = append(sent, began)
			} else {
				count.add(unanswered, 1, int64(given.Batches), int64(len(p.frame)))
			}
			continue
		}
		if err := p.receive(answered, &response); err != nil {
			return err
		}
		answered++
		for _, topic := range response.Topics {
			for _, partition := range topic.Partitions {
				err := kerr.ErrorForCode(partition.ErrorCode)
				if errors.Is(err, kerr.NotLeaderForPartition) && time.Now().Before(count.from) {
					continue // a topic that was made just now
				}
				if err != nil {
					return fmt.Errorf("partition %d: %w", partition.Partition, err)
				}
			}
		}
		count.add(time.Since(sent[0]), 1, int64(given.Batches), int64(len(p.frame)))
		sent = append(sent[:0], sent[1:]...)
	}
	return nil
}

func produce(opts *options) (*given, error) {
	places, err := lookUp(opts)
	if err != nil {
		return nil, err
	}
	var workers []worker
	for number := range opts.Clients {
		p, err := newProducer(opts, places[number%len(places)], number)
		if err != nil {
			return nil, err
		}
		defer p.Close()
		workers = append(workers, p.ask)
	}
	result, err := measure(opts, workers)
	if err == nil {
		result.Records = result.Batches * int64(opts.Produce.Records)
	}
	return result, err
}

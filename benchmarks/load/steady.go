package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"
)

type steadyOptions struct {
	Rate  int           `help:"Records a second." default:"5000"`
	Every time.Duration `help:"How often a batch is due." default:"1ms"`
	Size  int           `help:"Bytes of a record's value." default:"100"`
	Acks  int16         `help:"-1 or 1." default:"-1"`
}

const (
	dueBytes      = 8
	notSentBefore = 1 << 16
)

// steady sends a batch when one is due, whether or not the last one is answered, and reads on another connection what
// comes. A record's time counts from when it was due, so that a broker that stops for a while is charged for each record
// that came meanwhile.
func steady(opts *options) (*given, error) {
	places, err := lookUp(opts)
	if err != nil {
		return nil, err
	}
	where := places[0]
	offset, err := endOf(where)
	if err != nil {
		return nil, err
	}
	writing, err := dial(where.address)
	if err != nil {
		return nil, err
	}
	defer writing.Close()
	reading, err := dial(where.address)
	if err != nil {
		return nil, err
	}
	defer reading.Close()
	s := &steadyLoad{
		opts: opts, where: where, dues: make(chan time.Time, notSentBefore), from: time.Now().Add(opts.Warm),
		acknowledged: newHistogram(), arrived: newHistogram(), worst: make([]float64, int(opts.For/time.Second)+1),
	}
	s.until = s.from.Add(opts.For)
	var group errgroup.Group
	group.Go(func() error { return closeAlso(s.write(writing), writing, reading) })
	group.Go(func() error { return closeAlso(s.acknowledge(writing), writing, reading) })
	group.Go(func() error { return closeAlso(s.read(reading, offset), writing, reading) })
	time.Sleep(time.Until(s.from))
	before := cpuSeconds()
	time.Sleep(opts.For)
	used := cpuSeconds() - before
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return &given{
		From:    float64(s.from.UnixNano()) / 1e9,
		Seconds: opts.For.Seconds(), CPUSeconds: used, Requests: s.acknowledged.TotalCount(),
		Batches: s.acknowledged.TotalCount(), Records: s.arrived.TotalCount(),
		Bytes:   s.arrived.TotalCount() * int64(opts.Steady.Size),
		Latency: told(s.acknowledged), EndToEnd: told(s.arrived), Worst: s.worst[:len(s.worst)-1],
	}, nil
}

// closeAlso ends the others where one has failed.
func closeAlso(err error, conns ...*conn) error {
	if err != nil {
		for _, c := range conns {
			c.Close()
		}
	}
	return err
}

type steadyLoad struct {
	opts                  *options
	where                 *place
	dues                  chan time.Time
	from, until           time.Time
	acknowledged, arrived *hdrhistogram.Histogram
	worst                 []float64
}

func (s *steadyLoad) write(c *conn) error {
	defer close(s.dues)
	given := s.opts.Steady
	count := max(int(float64(given.Rate)*given.Every.Seconds()), 1)
	payload := values(count, max(given.Size, dueBytes), 1)
	began := time.Now()
	for number := int64(0); ; number++ {
		due := began.Add(time.Duration(number) * given.Every)
		if due.After(s.until) {
			return nil
		}
		time.Sleep(time.Until(due))
		for _, value := range payload {
			binary.BigEndian.PutUint64(value, uint64(due.UnixNano()))
		}
		encoded, err := batch(payload, "none", due.UnixMilli())
		if err != nil {
			return err
		}
		request := kmsg.NewPtrProduceRequest()
		request.Version = produceVersion
		request.Acks = given.Acks
		request.TimeoutMillis = int32(answerTimeout.Milliseconds())
		topic := kmsg.NewProduceRequestTopic()
		topic.Topic = s.where.topic
		partition := kmsg.NewProduceRequestTopicPartition()
		partition.Partition = s.where.partitions[0]
		partition.Records = encoded
		topic.Partitions = append(topic.Partitions, partition)
		request.Topics = append(request.Topics, topic)
		frame := frameOf(request)
		renumber(frame, int32(number))
		select {
		case s.dues <- due:
		default:
			return errors.New("the broker is behind by more requests than this program keeps")
		}
		if _, err := c.Write(frame); err != nil {
			return err
		}
	}
}

func (s *steadyLoad) acknowledge(c *conn) error {
	var response kmsg.ProduceResponse
	response.SetVersion(produceVersion)
	number := int32(0)
	for due := range s.dues {
		if err := c.receive(number, &response); err != nil {
			return err
		}
		number++
		if err := kerr.ErrorForCode(response.Topics[0].Partitions[0].ErrorCode); err != nil {
			return err
		}
		if s.counts(due) {
			record(s.acknowledged, time.Since(due))
		}
	}
	return nil
}

func (s *steadyLoad) counts(due time.Time) bool { return !due.Before(s.from) && due.Before(s.until) }

func (s *steadyLoad) read(c *conn, offset int64) error {
	var response kmsg.FetchResponse
	response.SetVersion(fetchVersion)
	r := &reader{
		conn: c, topic: s.where.topic, partitions: s.where.partitions[:1], maxBytes: 1 << 20,
		offsets: map[int32]int64{s.where.partitions[0]: offset},
	}
	last := s.until.Add(-2 * s.opts.Steady.Every)
	for number := int32(0); ; number++ {
		request := r.request()
		request.MinBytes = 1
		frame := frameOf(request)
		renumber(frame, number)
		if _, err := c.Write(frame); err != nil {
			return err
		}
		if err := r.receive(number, &response); err != nil {
			return err
		}
		arrived := time.Now()
		newest, err := s.takeRecords(r, &response, arrived)
		if err != nil || newest.After(last) {
			return err
		}
		if arrived.After(s.until.Add(answerTimeout)) {
			return errors.New("records that were acknowledged did not come")
		}
	}
}

func (s *steadyLoad) takeRecords(r *reader, response *kmsg.FetchResponse, arrived time.Time) (time.Time, error) {
	var newest time.Time
	if err := kerr.ErrorForCode(response.ErrorCode); err != nil {
		return newest, err
	}
	for _, topic := range response.Topics {
		for _, partition := range topic.Partitions {
			if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
				return newest, err
			}
			for rest := partition.RecordBatches; len(rest) >= wholeBatchHeader; {
				var whole kmsg.RecordBatch
				size := lengthOver + int(binary.BigEndian.Uint32(rest[8:]))
				if size > len(rest) {
					break
				}
				if err := whole.ReadFrom(rest[:size]); err != nil {
					return newest, err
				}
				rest = rest[size:]
				if whole.FirstOffset != r.offsets[partition.Partition] {
					return newest, fmt.Errorf("offset %d came in the place of %d", whole.FirstOffset, r.offsets[partition.Partition])
				}
				r.offsets[partition.Partition] = whole.FirstOffset + int64(whole.LastOffsetDelta) + 1
				values, err := valuesOf(&whole)
				if err != nil {
					return newest, err
				}
				for _, value := range values {
					due := time.Unix(0, int64(binary.BigEndian.Uint64(value)))
					newest = latest(newest, due)
					if s.counts(due) {
						late := arrived.Sub(due)
						record(s.arrived, late)
						second := int(due.Sub(s.from) / time.Second)
						s.worst[second] = max(s.worst[second], float64(late.Microseconds())/1000)
					}
				}
			}
		}
	}
	return newest, nil
}

func latest(one, other time.Time) time.Time {
	return slices.MaxFunc([]time.Time{one, other}, time.Time.Compare)
}

func endOf(where *place) (int64, error) {
	c, err := dial(where.address)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	request := kmsg.NewPtrListOffsetsRequest()
	request.Version = 7
	request.ReplicaID = -1
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = where.topic
	partition := kmsg.NewListOffsetsRequestTopicPartition()
	partition.Partition = where.partitions[0]
	partition.Timestamp = -1
	topic.Partitions = append(topic.Partitions, partition)
	request.Topics = append(request.Topics, topic)
	var response kmsg.ListOffsetsResponse
	if err := c.ask(request, &response); err != nil {
		return 0, err
	}
	found := response.Topics[0].Partitions[0]
	return found.Offset, kerr.ErrorForCode(found.ErrorCode)
}

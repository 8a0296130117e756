package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	sizeBytes     = 4
	correlationAt = 8 // size, API key, API version
	answerTimeout = 60 * time.Second
	clientID      = "load"
	// What a broker may answer at most: more is no answer of Kafka's protocol.
	mostFrameBytes = 256 << 20
)

var formatter = kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID))

// conn is a connection whose answers are read in the order of its requests.
type conn struct {
	net.Conn
	frame []byte
	head  [sizeBytes]byte
}

func dial(address string) (*conn, error) {
	dialer := net.Dialer{Timeout: answerTimeout}
	opened, err := dialer.DialContext(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: opened}, nil
}

// frameOf encodes a request with room for its correlation id, which renumber sets.
func frameOf(request kmsg.Request) []byte {
	return formatter.AppendRequest(nil, request, 0)
}

func renumber(frame []byte, correlation int32) {
	binary.BigEndian.PutUint32(frame[correlationAt:], uint32(correlation))
}

// receive reads one answer and decodes it. What it decodes into may refer to the frame until the next call.
func (c *conn) receive(correlation int32, response kmsg.Response) error {
	if err := c.SetReadDeadline(time.Now().Add(answerTimeout)); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, c.head[:]); err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	size := int(binary.BigEndian.Uint32(c.head[:]))
	if size < 4 || size > mostFrameBytes {
		return fmt.Errorf("an answer of %d bytes", size)
	}
	if cap(c.frame) < size {
		c.frame = make([]byte, size)
	}
	c.frame = c.frame[:size]
	if _, err := io.ReadFull(c, c.frame); err != nil {
		return fmt.Errorf("half an answer: %w", err)
	}
	if got := int32(binary.BigEndian.Uint32(c.frame)); got != correlation {
		return fmt.Errorf("an answer to request %d in the place of %d", got, correlation)
	}
	body := c.frame[4:]
	if response.IsFlexible() && response.Key() != kmsg.ApiVersions.Int16() {
		if len(body) == 0 || body[0] != 0 {
			return errors.New("tagged fields in an answer's header")
		}
		body = body[1:]
	}
	return response.ReadFrom(body)
}

func (c *conn) ask(request kmsg.Request, response kmsg.Response) error {
	response.SetVersion(request.GetVersion())
	if _, err := c.Write(frameOf(request)); err != nil {
		return err
	}
	return c.receive(0, response)
}

// place is a broker, and what it leads of the topic.
type place struct {
	address    string
	topic      string
	partitions []int32
}

const (
	lookUpTimeout = 60 * time.Second
	lookUpPause   = 50 * time.Millisecond
)

// lookUp waits until each partition of the topic has a leader: a broker may hear of a new topic a moment after the one
// that made it.
//
// The places are in the order of their brokers' ids.
func lookUp(opts *options) ([]*place, error) {
	c, err := dial(opts.Bootstrap)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for deadline := time.Now().Add(lookUpTimeout); ; time.Sleep(lookUpPause) {
		places, err := askForPlaces(c, opts.Topic)
		if err == nil || !kerr.IsRetriable(err) || time.Now().After(deadline) {
			return places, err
		}
	}
}

func askForPlaces(c *conn, name string) ([]*place, error) {
	request := kmsg.NewPtrMetadataRequest()
	request.Version = 12
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr(name)
	request.Topics = append(request.Topics, topic)
	var response kmsg.MetadataResponse
	if err := c.ask(request, &response); err != nil {
		return nil, err
	}
	if len(response.Topics) != 1 {
		return nil, fmt.Errorf("%d topics in an answer about %s", len(response.Topics), name)
	}
	found := response.Topics[0]
	if err := kerr.ErrorForCode(found.ErrorCode); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	led := map[int32][]int32{}
	for _, partition := range found.Partitions {
		if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
			return nil, fmt.Errorf("%s-%d: %w", name, partition.Partition, err)
		}
		led[partition.Leader] = append(led[partition.Leader], partition.Partition)
	}
	slices.SortFunc(response.Brokers, func(one, other kmsg.MetadataResponseBroker) int {
		return cmp.Compare(one.NodeID, other.NodeID)
	})
	var places []*place
	for _, broker := range response.Brokers {
		if partitions, leads := led[broker.NodeID]; leads {
			slices.Sort(partitions)
			address := net.JoinHostPort(broker.Host, strconv.Itoa(int(broker.Port)))
			places = append(places, &place{address, name, partitions})
		}
		delete(led, broker.NodeID)
	}
	if len(led) > 0 || len(places) == 0 {
		return nil, fmt.Errorf("%s: leaders that are no brokers", name)
	}
	return places, nil
}

type idleConns []*conn

// openIdle has connections that have asked once, as those of clients that wait.
func openIdle(opts *options) (idleConns, error) {
	var all idleConns
	for range opts.Idle {
		c, err := dial(opts.Bootstrap)
		if err != nil {
			all.close()
			return nil, err
		}
		all = append(all, c)
		request := kmsg.NewPtrApiVersionsRequest()
		var response kmsg.ApiVersionsResponse
		if err := c.ask(request, &response); err != nil {
			all.close()
			return nil, err
		}
	}
	return all, nil
}

func (all idleConns) close() {
	for _, c := range all {
		c.Close()
	}
}

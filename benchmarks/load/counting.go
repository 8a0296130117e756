package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"
)

const (
	longestMicros   = int64(120 * time.Second / time.Microsecond)
	precisionDigits = 3
)

var percentiles = map[string]float64{"p50": 50, "p90": 90, "p99": 99, "p99.9": 99.9, "max": 100}

// counter is what one connection has got done since the warm-up. Only its own goroutine writes to it.
type counter struct {
	from, until time.Time
	ended       atomic.Bool
	requests    int64
	batches     int64
	records     int64
	bytes       int64
	latency     *hdrhistogram.Histogram
	budget      *budget
}

// budget is how many bytes all workers of a run may write together; with 0, as many as they can.
type budget struct {
	most, taken int64
	spent       chan struct{}
	mutex       sync.Mutex
}

func newBudget(most int64) *budget { return &budget{most: most, spent: make(chan struct{})} }

// take tells whether so many bytes more may be written. The first who may not ends the run.
func (b *budget) take(bytes int64) bool {
	if b.most == 0 {
		return true
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.isSpent() {
		return false
	}
	if b.taken+bytes > b.most {
		close(b.spent)
		return false
	}
	b.taken += bytes
	return true
}

func (b *budget) isSpent() bool {
	select {
	case <-b.spent:
		return true
	default:
		return false
	}
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, longestMicros, precisionDigits)
}

func (c *counter) over() bool {
	return c.ended.Load() || c.budget.isSpent() || !time.Now().Before(c.until)
}

func (c *counter) add(latency time.Duration, requests, batches, bytes int64) {
	now := time.Now()
	if now.Before(c.from) || now.After(c.until) {
		return
	}
	c.requests += requests
	c.batches += batches
	c.bytes += bytes
	if latency != unanswered {
		record(c.latency, latency)
	}
}

func record(into *hdrhistogram.Histogram, latency time.Duration) {
	_ = into.RecordValue(min(max(latency.Microseconds(), 1), longestMicros))
}

// unanswered is the latency of a request that has no answer.
const unanswered = time.Duration(-1)

type worker func(*options, *counter) error

// measure has all workers ask at once; the first one that fails ends the others.
func measure(opts *options, workers []worker) (*given, error) {
	from := time.Now().Add(opts.Warm)
	limit := newBudget(opts.Produce.MostBytes)
	counters := make([]*counter, len(workers))
	var group, ctx = errgroup.WithContext(context.Background())
	for i, work := range workers {
		count := &counter{from: from, until: from.Add(opts.For), latency: newHistogram(), budget: limit}
		counters[i] = count
		group.Go(func() error { return work(opts, count) })
	}
	go func() {
		<-ctx.Done()
		for _, count := range counters {
			count.ended.Store(true)
		}
	}()
	select {
	case <-ctx.Done():
	case <-limit.spent:
	case <-time.After(time.Until(from)):
	}
	early := time.Now().Before(from)
	before := cpuSeconds()
	select {
	case <-ctx.Done():
	case <-limit.spent:
	case <-time.After(opts.For):
	}
	result := &given{From: float64(from.UnixNano()) / 1e9, Seconds: opts.For.Seconds(), CPUSeconds: cpuSeconds() - before}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if early {
		return nil, errors.New("the most bytes were written before anything was measured")
	}
	if limit.isSpent() {
		// All that was counted was answered by now.
		result.Seconds = min(time.Since(from), opts.For).Seconds()
		result.CPUSeconds = cpuSeconds() - before
	}
	all := newHistogram()
	for _, count := range counters {
		result.Requests += count.requests
		result.Batches += count.batches
		result.Records += count.records
		result.Bytes += count.bytes
		all.Merge(count.latency)
	}
	if all.TotalCount() > 0 {
		result.Latency = told(all)
	}
	return result, nil
}

// told gives percentiles in milliseconds.
func told(of *hdrhistogram.Histogram) map[string]float64 {
	found := make(map[string]float64, len(percentiles))
	for name, percentile := range percentiles {
		found[name] = float64(of.ValueAtQuantile(percentile)) / 1000
	}
	return found
}

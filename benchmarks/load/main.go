// Command load asks a broker for as much as it takes, for seconds, and prints what it was given as one line of JSON.
//
// Requests are encoded once, by franz-go's kmsg, and sent again and again with other correlation ids, so that a request
// costs this program a fraction of what it costs the broker. Every answer is decoded, and its errors end the run.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

type options struct {
	Bootstrap string        `help:"host:port of the broker." required:""`
	Topic     string        `help:"A topic that is there." required:""`
	Warm      time.Duration `help:"Asked before anything is measured." default:"2s"`
	For       time.Duration `help:"How long is measured." default:"5s"`
	Clients   int           `help:"Connections." default:"1"`
	Idle      int           `help:"Further connections that have asked once, and ask no more." default:"0"`

	Produce produceOptions `cmd:"" help:"Produce the same batches again and again."`
	Fetch   fetchOptions   `cmd:"" help:"Fetch from the start of the partitions to their ends, again and again."`
	Steady  steadyOptions  `cmd:"" help:"Produce at a rate, fetch what comes, and tell how late each record is."`
}

// given is what is printed. From is when the measured seconds began, since 1970. Latencies are in milliseconds, from the moment at which a request was due.
type given struct {
	From       float64            `json:"from"`
	Seconds    float64            `json:"seconds"`
	Requests   int64              `json:"requests"`
	Batches    int64              `json:"batches"`
	Records    int64              `json:"records"`
	Bytes      int64              `json:"bytes"`
	CPUSeconds float64            `json:"generator CPU s"`
	Latency    map[string]float64 `json:"latency ms,omitempty"`
	EndToEnd   map[string]float64 `json:"end to end ms,omitempty"`
	Worst      []float64          `json:"worst ms of each second,omitempty"`
}

func main() {
	var opts options
	ctx := kong.Parse(&opts, kong.UsageOnError())
	if err := run(ctx.Command(), &opts); err != nil {
		fmt.Fprintf(os.Stderr, "load: %v\n", err)
		os.Exit(1)
	}
}

func run(command string, opts *options) error {
	idle, err := openIdle(opts)
	if err != nil {
		return err
	}
	defer idle.close()
	var result *given
	switch command {
	case "produce":
		result, err = produce(opts)
	case "fetch":
		result, err = fetch(opts)
	default:
		result, err = steady(opts)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

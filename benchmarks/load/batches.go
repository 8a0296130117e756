package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	batchHeaderBytes = 61
	crcAt            = 17
	crcOver          = 21
	lengthOver       = 12
	// Values compress to about half, as records of businesses do.
	alphabet = "abcdefghijklmnop"
)

// values makes as many values of a size, half of each random and half of few letters.
func values(count, size int, seed int64) [][]byte {
	rng := rand.New(rand.NewSource(seed))
	made := make([][]byte, count)
	for i := range made {
		value := make([]byte, size)
		rng.Read(value[:size/2])
		for at := size / 2; at < size; at++ {
			value[at] = alphabet[rng.Intn(len(alphabet))]
		}
		made[i] = value
	}
	return made
}

// batch encodes records of the values in a batch of magic 2, at a time in milliseconds.
func batch(values [][]byte, codec string, atMillis int64) ([]byte, error) {
	var records []byte
	for i, value := range values {
		record := kmsg.NewRecord()
		record.OffsetDelta = int32(i)
		record.Value = value
		record.Length = int32(lengthOf(record))
		records = record.AppendTo(records)
	}
	attributes, compressed, err := compress(records, codec)
	if err != nil {
		return nil, err
	}
	whole := kmsg.NewRecordBatch()
	whole.PartitionLeaderEpoch = -1
	whole.Magic = 2
	whole.Attributes = attributes
	whole.LastOffsetDelta = int32(len(values) - 1)
	whole.FirstTimestamp, whole.MaxTimestamp = atMillis, atMillis
	whole.ProducerID, whole.ProducerEpoch, whole.FirstSequence = -1, -1, -1
	whole.NumRecords = int32(len(values))
	whole.Records = compressed
	whole.Length = int32(batchHeaderBytes - lengthOver + len(compressed))
	encoded := whole.AppendTo(nil)
	binary.BigEndian.PutUint32(encoded[crcAt:], crc32.Checksum(encoded[crcOver:], castagnoli))
	return encoded, nil
}

// lengthOf is what a record takes behind its length.
func lengthOf(record kmsg.Record) int {
	record.Length = 0
	return len(record.AppendTo(nil)) - 1
}

var codecs = map[string]kgo.CompressionCodec{
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

func compress(records []byte, name string) (int16, []byte, error) {
	if name == "none" {
		return 0, records, nil
	}
	known, ok := codecs[name]
	if !ok {
		return 0, nil, fmt.Errorf("no codec %q", name)
	}
	compressor, err := kgo.DefaultCompressor(known)
	if err != nil {
		return 0, nil, err
	}
	compressed, used := compressor.Compress(new(bytes.Buffer), records)
	return int16(used), compressed, nil
}

func nowMillis() int64 { return time.Now().UnixMilli() }

// valuesOf is the other way round, for batches that are not compressed.
func valuesOf(whole *kmsg.RecordBatch) ([][]byte, error) {
	var found [][]byte
	for rest := whole.Records; len(rest) > 0; {
		length, size := binary.Varint(rest)
		var record kmsg.Record
		end := size + int(length)
		if size <= 0 || length < 0 || end > len(rest) || record.ReadFrom(rest[:end]) != nil {
			return nil, fmt.Errorf("no record behind %d of the batch at offset %d", len(found), whole.FirstOffset)
		}
		found = append(found, record.Value)
		rest = rest[end:]
	}
	if len(found) != int(whole.NumRecords) {
		return nil, fmt.Errorf("%d of %d records in the batch at offset %d", len(found), whole.NumRecords, whole.FirstOffset)
	}
	return found, nil
}

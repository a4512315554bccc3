package store

import (
	"encoding/binary"
	"hash/crc32"
	"log/slog"
	"testing"
)

// FrameBytes returns how many bytes a check takes while it waits for the database.
func FrameBytes(t testing.TB, c Check) int {
	t.Helper()
	return len(Frame(t, c))
}

// Frame returns the form in which a check waits for the database.
func Frame(t testing.TB, c Check) []byte {
	t.Helper()
	frame, err := appendFrame(nil, c)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

// ParseFrame reads what Frame returned.
func ParseFrame(frame []byte) (Check, error) { return decodeFrame(frame) }

// FrameBody returns a frame without its head.
func FrameBody(frame []byte) []byte { return frame[frameHeadSize:] }

// FrameAround is the inverse of FrameBody.
func FrameAround(body []byte) []byte {
	frame := make([]byte, 0, frameHeadSize+len(body))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(body)))
	frame = binary.BigEndian.AppendUint32(frame, crc32.Checksum(body, castagnoli))
	frame = binary.BigEndian.AppendUint32(frame, crc32.Checksum(frame, castagnoli))
	return append(frame, body...)
}

// SpoolFile is what a Spool needs of a file.
type SpoolFile = spoolFile

// OpenSpoolOn opens a spool on a file that is opened already.
func OpenSpoolOn(f SpoolFile, size int64, path string, limit int64, log *slog.Logger) (*Spool, Recovered, error) {
	s, err := openSpool(f, size, path, limit, log)
	if err != nil {
		return nil, Recovered{}, err
	}
	return s, s.recovered, nil
}

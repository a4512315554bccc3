package store

import (
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

package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Replica starts a hot standby that follows the server: whatever is committed here can be read there soon afterwards. It
// belongs to the test, as the server does, and can be stopped and started again.
func (s *Server) Replica(t testing.TB) *Server {
	t.Helper()
	r, err := s.startReplica()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	return r
}

func (s *Server) startReplica() (*Server, error) {
	bin, err := findBinaries()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "rollcall-replica-")
	if err != nil {
		return nil, err
	}
	attr, err := unprivileged(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	data := filepath.Join(dir, "data")
	backup := exec.Command(filepath.Join(bin, "pg_basebackup"), "--pgdata", data, "--write-recovery-conf",
		"--checkpoint", "fast", "--wal-method", "stream", "--no-sync",
		"--dbname", fmt.Sprintf("host=127.0.0.1 port=%d user=rollcall", s.port))
	backup.Dir, backup.SysProcAttr = dir, attr
	if out, err := backup.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("pg_basebackup: %w: %s", err, out), os.RemoveAll(dir))
	}
	return serve(bin, dir, data, attr, "hot_standby=on")
}

// CaughtUp returns when the replica shows all that s had committed when it was called. It fails t when that takes longer
// than a start may.
func (s *Server) CaughtUp(t testing.TB, replica *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	var written string
	if err := s.ask(ctx, &written, `SELECT pg_current_wal_lsn()::text`); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		var there bool
		if err := replica.ask(ctx, &there, `SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn`, written); err != nil {
			t.Fatalf("the replica does not say how far it is: %v\n%s", err, replica.Log(t, 0))
		}
		if there {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("the replica does not catch up with %s\n%s", written, replica.Log(t, 0))
		}
	}
}

func (s *Server) ask(ctx context.Context, answer any, question string, args ...any) error {
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing depends on how the connection ends
	return conn.QueryRow(ctx, question, args...).Scan(answer)
}

// Logged returns how many bytes the server has logged so far.
func (s *Server) Logged(t testing.TB) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(s.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// Log returns what the server has logged after the first so many bytes.
func (s *Server) Log(t testing.TB, after int64) string {
	t.Helper()
	log, err := os.Open(filepath.Join(s.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // it is only read
	text, err := io.ReadAll(io.NewSectionReader(log, after, 1<<30))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ToValidUTF8(string(text), "�")
}

// Database returns the URL of a fresh, empty database on the server, which is dropped when t ends.
func (s *Server) Database(t testing.TB) (url string) {
	t.Helper()
	return s.database(t)
}

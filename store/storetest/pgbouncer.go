package storetest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Bouncer is a pgbouncer in transaction mode in front of a server: connections of its clients share few of the server's, a
// transaction at a time.
type Bouncer struct {
	port int
}

// PgBouncer starts a pgbouncer in front of s that opens at most poolSize connections to each of its databases. It ends with
// t. A machine without pgbouncer fails the test and says what to install.
func (s *Server) PgBouncer(t testing.TB, poolSize int) *Bouncer {
	t.Helper()
	b, err := s.bounce(t, poolSize)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// URL returns the address of the database that is at rawURL on the server. Without a mode of queries in it, pgx prepares
// statements.
func (b *Bouncer) URL(t testing.TB, rawURL string) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = fmt.Sprintf("127.0.0.1:%d", b.port)
	return u.String()
}

// bouncerConfig lets everybody in under the name that the server knows, as its own settings do.
const bouncerConfig = `
[databases]
* = host=127.0.0.1 port=%d user=rollcall
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = %d
max_client_conn = 500
max_db_connections = %[3]d
logfile = %[4]s/log
`

func (s *Server) bounce(t testing.TB, poolSize int) (*Bouncer, error) {
	bin, err := exec.LookPath("pgbouncer")
	if err != nil {
		if bin, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			return nil, errors.New("this test needs pgbouncer, which is not in PATH: on Debian run apt-get install pgbouncer, " +
				"elsewhere put it into PATH")
		}
	}
	dir, err := os.MkdirTemp("", "rollcall-pgbouncer-") //nolint:usetesting // t.TempDir lies in folders that the user it runs as may not enter
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	attr, err := unprivileged(dir)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	ini := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(ini, fmt.Appendf(nil, bouncerConfig, s.port, port, poolSize, dir), 0o644); err != nil { //nolint:gosec // it is read by another user
		return nil, err
	}
	// As the keeper of a server does, the shell ends it when our end of its input closes, also by our death.
	bouncer := exec.Command("/bin/sh", "-c", `"$@" >/dev/null 2>&1 & pid=$!; read -r _; kill -TERM $pid; wait $pid`, "keeper", bin, "-q", ini)
	bouncer.Dir, bouncer.SysProcAttr = dir, attr
	stop, err := bouncer.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := bouncer.Start(); err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		_ = stop.Close()
		_ = bouncer.Wait() // it was killed
	})
	b := &Bouncer{port}
	return b, b.await(t, filepath.Join(dir, "log"))
}

// await returns when the server answers through the pooler.
func (b *Bouncer) await(t testing.TB, log string) error {
	address := fmt.Sprintf("postgres://rollcall@127.0.0.1:%d/postgres?sslmode=disable&default_query_exec_mode=exec", b.port)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, address)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			text, _ := os.ReadFile(log)
			return fmt.Errorf("pgbouncer does not answer: %w\n%s", err, text)
		}
	}
}

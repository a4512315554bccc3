package storetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Postgres returns the URL of a fresh, empty database on a real Postgres server that all tests of the process share. The
// database is dropped when t ends, the server is gone when the process is, however it ends. A machine without Postgres
// fails the test and says what to install.
func Postgres(t testing.TB) (url string) {
	t.Helper()
	s, err := sharedServer()
	if err != nil {
		t.Fatal(err)
	}
	return s.database(t)
}

// PostgresServer starts a Postgres server of the test's own, with one empty database, for tests that take it away. More
// settings may be given, like "fsync=on": the server of a test does not care for its disk.
func PostgresServer(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := startServer(settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

var sharedServer = sync.OnceValues(func() (*Server, error) { return startServer() })

// Server is a Postgres server on 127.0.0.1 that can be stopped and started again. It belongs to one test.
type Server struct {
	dir    string
	port   int
	keeper *exec.Cmd
	orders io.WriteCloser // to the keeper; when this end closes, also by our death, the keeper cleans up
	done   *bufio.Reader  // from the keeper: one line for each order carried out

	databases atomic.Int64
}

// URL returns the address of the server's own database.
func (s *Server) URL() string { return s.url("postgres") }

// Stop ends the server at once, as a crash would: no connection survives. What was committed stays.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if err := s.order("stop"); err != nil {
		t.Fatal(err)
	}
}

// Start starts the server again at the same address and returns when it answers.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) url(database string) string {
	return fmt.Sprintf("postgres://rollcall:rollcall@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// database creates a database and drops it when t ends.
func (s *Server) database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("rollcall_%d", s.databases.Add(1))
	if err := s.exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.exec("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return s.url(name)
}

func (s *Server) exec(statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing depends on how the connection ends
	_, err = conn.Exec(ctx, statement)
	return err
}

// keeperScript runs the server for us, on orders that it reads line by line. It sees the end of its input when our
// process ends, even by a panic or kill -9, and then leaves neither a server nor its files behind.
const keeperScript = `
dir=$1; shift
pid=
stop() { if [ -n "$pid" ]; then kill -QUIT "$pid"; wait "$pid"; pid=; fi; }
while read -r order; do
	case $order in
	start) "$@" >>"$dir/log" 2>&1 & pid=$! ;;
	stop) stop ;;
	esac
	echo done
done
stop
rm -rf "$dir"
`

// startTimeout bounds the start of a server, generous for a machine busy with other tests.
const startTimeout = time.Minute

func startServer(settings ...string) (*Server, error) {
	bin, err := findBinaries()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "rollcall-postgres-")
	if err != nil {
		return nil, err
	}
	attr, err := unprivileged(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "--pgdata", data, "--username", "rollcall",
		"--auth", "trust", "--encoding", "UTF8", "--no-locale", "--no-sync", "--no-instructions")
	initdb.Dir, initdb.SysProcAttr = dir, attr
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w: %s", err, out), os.RemoveAll(dir))
	}
	return serve(bin, dir, data, attr, settings...)
}

// serve starts a server on the files in data, a folder in dir, which goes when the server does.
func serve(bin, dir, data string, attr *syscall.SysProcAttr, settings ...string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s := &Server{dir: dir, port: port}
	s.keeper = exec.Command("/bin/sh", "-c", keeperScript, "keeper", dir,
		filepath.Join(bin, "postgres"), "-D", data, "-h", "127.0.0.1", "-p", strconv.Itoa(port),
		"-c", "unix_socket_directories=", "-c", "max_connections=200", "-c", "shared_buffers=32MB",
		// The files need to survive a crash of the server, not of the machine.
		"-c", "fsync=off", "-c", "full_page_writes=off")
	for _, setting := range settings {
		s.keeper.Args = append(s.keeper.Args, "-c", setting) // the last of a name holds
	}
	s.keeper.Dir, s.keeper.SysProcAttr = dir, attr
	if err := s.launch(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) launch() error {
	orders, err := s.keeper.StdinPipe()
	if err != nil {
		return err
	}
	done, err := s.keeper.StdoutPipe()
	if err != nil {
		return err
	}
	s.orders, s.done = orders, bufio.NewReader(done)
	if err := s.keeper.Start(); err != nil {
		return err
	}
	if err := s.start(); err != nil {
		s.close()
		return err
	}
	return nil
}

// start orders the keeper to start the server and waits until it answers.
func (s *Server) start() error {
	if err := s.order("start"); err != nil {
		return err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(startTimeout); ; <-tick.C {
		err := s.exec("SELECT 1")
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("postgres does not answer: %w\n%s", err, log)
		}
	}
}

func (s *Server) order(order string) error {
	if _, err := fmt.Fprintln(s.orders, order); err != nil {
		return fmt.Errorf("%s postgres: %w", order, err)
	}
	if _, err := s.done.ReadString('\n'); err != nil {
		return fmt.Errorf("%s postgres: %w", order, err)
	}
	return nil
}

func (s *Server) close() {
	_ = s.orders.Close()
	_ = s.keeper.Wait() // the keeper's status is that of its last command, rm
}

// findBinaries returns the folder of initdb and postgres: the one in PATH, else the newest that Debian installed.
func findBinaries() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil && hasPostgres(filepath.Dir(path)) {
			return filepath.Dir(path), nil
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	slices.SortFunc(found, func(a, b string) int { return debianVersion(b) - debianVersion(a) })
	for _, dir := range found {
		if hasPostgres(dir) {
			return dir, nil
		}
	}
	return "", errors.New("this test needs Postgres: initdb and postgres are neither in PATH nor in " +
		"/usr/lib/postgresql/*/bin; on Debian run apt-get install postgresql, elsewhere put them into PATH")
}

func hasPostgres(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

func debianVersion(bin string) int {
	version, _ := strconv.Atoi(strings.Split(bin, "/")[4])
	return version
}

// unprivileged gives dir to the user whom the server is to run as, because Postgres refuses to run as root. The server
// gets a process group of its own: an interrupt typed at the terminal is for the test, whose end the keeper notices.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() != 0 {
		return attr, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, fmt.Errorf("postgres does not run as root, and there is no user to run it as: %w", err)
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr, os.Chown(dir, int(uid), int(gid))
}

// freePort returns a port below those that the kernel gives to outgoing connections, so that it is still free when a
// stopped server starts again.
func freePort() (int, error) {
	var err error
	for range 100 {
		port := 20000 + rand.IntN(12000)
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no free port: %w", err)
}

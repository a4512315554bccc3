//go:build unix

package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/rollcallhq/rollcall/store"
)

// A child is this test program again, as a service whose database is away. What it is to do stands in these variables: the
// path of its spool, how many checks to make, how many bytes of them to keep in memory, and how large a file may become (0:
// as large as it likes). It prints the number of each check that waits, and then what its recorder says of itself.
const (
	childSpool = "ROLLCALL_TEST_SPOOL"
	childWork  = "ROLLCALL_TEST_SPOOL_WORK"
)

func init() {
	path := os.Getenv(childSpool)
	if path == "" {
		return
	}
	if err := beChild(path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func beChild(path string) error {
	var checks, keep int
	var room uint64
	if _, err := fmt.Sscan(os.Getenv(childWork), &checks, &keep, &room); err != nil {
		return err
	}
	if room > 0 {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: room, Max: room}); err != nil {
			return err
		}
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	spool, _, err := store.OpenSpool(path, 0, log)
	if err != nil {
		return err
	}
	r := store.NewRecorder(store.RecorderConfig{Store: &strict{away: true}, Spool: spool, Keep: keep, Log: log})
	go func() { _ = r.Run(context.Background()) }() // until the process is killed
	for i := range checks {
		if _, err := r.Record(context.Background(), tick(i)); !errors.Is(err, store.ErrWaiting) {
			return fmt.Errorf("check %d: %w", i, err)
		}
		fmt.Println(i)
	}
	s := r.Stats()
	fmt.Println("stands", s.Waiting, s.Spooled, s.GivenUp, s.SpoolFails)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// child is a service whose database is away.
type child struct {
	cmd *exec.Cmd
	out *bufio.Scanner
	log strings.Builder
}

func startChild(t *testing.T, path string, checks, keep, room int) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), childSpool+"="+path, childWork+"="+fmt.Sprint(checks, keep, room))
	c.cmd.Stderr = &c.log
	if _, err := c.cmd.StdinPipe(); err != nil { // open until the child is waited for
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewScanner(out)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.kill(t)
		if err := c.cmd.Wait(); err == nil || c.cmd.ProcessState.ExitCode() == 1 {
			t.Errorf("the child ended by itself: %v\n%s", err, c.log.String())
		}
	})
	return c
}

func (c *child) kill(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
}

// until reads what the child prints up to a line that begins so.
func (c *child) until(t *testing.T, prefix string) string {
	t.Helper()
	for c.out.Scan() {
		if strings.HasPrefix(c.out.Text(), prefix) {
			return c.out.Text()
		}
	}
	t.Fatalf("the child ended: %v\n%s", c.out.Err(), c.log.String())
	return ""
}

// last reads what the child printed after the check n until it was killed, and returns the number of its last check.
func (c *child) last(t *testing.T, n int) int {
	t.Helper()
	for c.out.Scan() {
		var err error
		if n, err = strconv.Atoi(c.out.Text()); err != nil {
			t.Fatalf("the child says %q", c.out.Text())
		}
	}
	return n
}

// inOrder fails the test unless a spool holds the first n checks, in order.
func inOrder(t *testing.T, spool *store.Spool, n int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		next := 0
		db := &strict{before: func(group []store.Check) {
			for _, c := range group {
				if c.ID != tick(next).ID {
					t.Errorf("check %d of the spool is %s, want %s", next, c.ID, tick(next).ID)
				}
				next++
			}
		}}
		r, stop := runSpooling(t, db, spool, 0)
		synctest.Wait()
		stop()
		if next != n || r.Waiting() != 0 {
			t.Errorf("the spool had %d checks and %d still wait, want %d", next, r.Waiting(), n)
		}
	})
}

func TestAKilledServiceLosesWhatHadWaitedInMemoryAndSaysHowMuch(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "spool")
	c := startChild(t, path, 5000, 10<<20, 0)
	c.until(t, "stands")
	c.kill(t)
	spool, recovered := reopen(t, path)
	if want := (store.Recovered{Lost: 5000}); recovered != want {
		t.Errorf("%+v, want %+v", recovered, want)
	}
	spool.Close()
	if _, recovered := reopen(t, path); recovered != (store.Recovered{}) {
		t.Errorf("%+v is said a second time", recovered)
	}
}

func TestAServiceThatIsKilledWhileItSpools(t *testing.T) {
	t.Parallel()
	for _, at := range []int{0, 999, 5123, 20011, 31000} {
		path := filepath.Join(t.TempDir(), "spool")
		c := startChild(t, path, 1_000_000, 16<<10, 0)
		c.until(t, strconv.Itoa(at))
		c.kill(t)
		made := c.last(t, at) + 1
		spool, recovered := reopen(t, path)
		// The last check may have been taken and not yet been printed.
		if all := recovered.Checks + recovered.Lost; all != made && all != made+1 {
			t.Errorf("%+v after %d checks", recovered, made)
		}
		if recovered.Lost > made/2+1000 {
			t.Errorf("%+v, want most of them in the spool", recovered)
		}
		inOrder(t, spool, recovered.Checks)
	}
}

// A limit on the size of files is a full disk that any process can have for itself.
func TestAServiceThatIsKilledWhileItsDiskIsFull(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "spool")
	c := startChild(t, path, 10_000, 256<<10, 200_000)
	var waiting, spooled, givenUp int
	var fails bool
	stands := c.until(t, "stands")
	if _, err := fmt.Sscanf(stands, "stands %d %d %d %t", &waiting, &spooled, &givenUp, &fails); err != nil {
		t.Fatalf("%q: %v", stands, err)
	}
	c.kill(t)
	if waiting == 0 || spooled == 0 || waiting+spooled != 10_000 || givenUp != 0 || !fails {
		t.Fatalf("%q, want a part to wait in memory because the disk is full\n%s", stands, c.log.String())
	}
	spool, recovered := reopen(t, path)
	if want := (store.Recovered{Checks: spooled, Lost: waiting}); recovered != want {
		t.Errorf("%+v, want %+v", recovered, want)
	}
	inOrder(t, spool, spooled)
}

// reopen opens the spool of a child that was killed, as soon as the system has taken its lock back.
func reopen(t *testing.T, path string) (*store.Spool, store.Recovered) {
	t.Helper()
	for {
		s, recovered, err := store.OpenSpool(path, 0, slog.New(slog.DiscardHandler))
		if err == nil {
			t.Cleanup(func() { s.Close() })
			return s, recovered
		}
		if t.Context().Err() != nil || !strings.Contains(err.Error(), "another process") {
			t.Fatal(err)
		}
	}
}

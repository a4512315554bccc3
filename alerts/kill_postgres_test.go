//go:build unix

package alerts_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// line stands between a child and its database and follows what the child says there: each statement that it has run, and each
// commit, is a place on both sides of it.
type line struct {
	listener net.Listener
	to       string
	reaper   *reaper

	mu   sync.Mutex
	away time.Time // the database, until then
	open map[net.Conn]bool
}

func newLine(t *testing.T, to string, r *reaper) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed with the test
	if err != nil {
		t.Fatal(err)
	}
	l := &line{listener: listener, to: to, reaper: r, open: map[net.Conn]bool{}}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			served.Go(func() { l.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		served.Wait()
	})
	return l
}

func (l *line) serve(conn net.Conn) {
	defer conn.Close() //nolint:errcheck // whoever speaks here may be dead
	if !l.begin(conn) {
		return
	}
	defer l.end(conn)
	server, err := net.Dial("tcp", l.to) //nolint:noctx // on loopback
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // as above
	go func() {
		_, _ = io.Copy(conn, server)
		_ = conn.Close()
	}()
	talk := talk{prepared: map[string]string{}}
	said := make([]byte, 1<<16)
	for {
		n, err := conn.Read(said)
		if err != nil || !l.pass(server, talk.messages(said[:n]), &talk) {
			return
		}
	}
}

// begin reports whether the database is there to talk to.
func (l *line) begin(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Now().Before(l.away) {
		return false
	}
	l.open[conn] = true
	return true
}

func (l *line) end(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, conn)
}

// lose has all connections end and no other one begin for a while.
func (l *line) lose(long time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = time.Now().Add(long)
	for conn := range l.open {
		_ = conn.Close()
	}
}

// pass hands messages on, up to the place where the child dies or the database is lost, and reports whether the connection is to
// go on.
func (l *line) pass(server io.Writer, messages [][]byte, talk *talk) bool {
	var passed []byte
	ended := false
	for _, m := range messages {
		before, after := talk.follow(m)
		if ended = l.endsAt(before); ended {
			break
		}
		passed = append(passed, m...)
		if ended = l.endsAt(after); ended {
			break
		}
	}
	_, err := server.Write(passed) // what a child has said counts, dead as it is
	return err == nil && !ended
}

// endsAt reports whether the child or its connection ends at a place.
func (l *line) endsAt(place string) bool {
	if place == "" {
		return false
	}
	if _, lost := l.reaper.isTime(databaseLost); lost {
		l.lose(150 * time.Millisecond)
		return true
	}
	return l.reaper.comeBy(place)
}

// url returns the address of a database by way of the line.
func (l *line) url(database string) (string, error) {
	u, err := url.Parse(database)
	if err != nil {
		return "", fmt.Errorf("address of the database: %w", err)
	}
	u.Host = l.listener.Addr().String()
	return u.String(), nil
}

// talk is what a client says on one connection, message by message
// (https://www.postgresql.org/docs/15/protocol-message-formats.html).
type talk struct {
	rest     []byte // of a message that is not complete
	started  bool   // the first message, which has no type, was said
	prepared map[string]string
	bound    string // the statement that is run next
	wrote    string // the last that has written what is not committed
	within   bool   // a transaction that lasts until it says so
}

// messages returns those that are complete with what was said.
func (t *talk) messages(said []byte) [][]byte {
	t.rest = append(t.rest, said...)
	var all [][]byte
	for {
		size := 0 // of the type
		if t.started {
			size = 1
		}
		if len(t.rest) < size+4 {
			return all
		}
		size += int(binary.BigEndian.Uint32(t.rest[size:]))
		if len(t.rest) < size {
			return all
		}
		all = append(all, bytes.Clone(t.rest[:size]))
		t.rest, t.started = t.rest[size:], true
	}
}

// follow takes note of a message and returns the places on both sides of it, empty where there is none. What merely reads leaves
// nothing behind: after it is before what follows.
func (t *talk) follow(message []byte) (before, after string) {
	kind, said := message[0], message[min(5, len(message)):]
	switch kind {
	case 'P': // parse
		name, rest, _ := bytes.Cut(said, []byte{0})
		text, _, _ := bytes.Cut(rest, []byte{0})
		t.prepared[string(name)] = tidy(text)
	case 'B': // bind
		_, rest, _ := bytes.Cut(said, []byte{0}) // the portal
		name, _, _ := bytes.Cut(rest, []byte{0})
		t.bound = t.prepared[string(name)]
		return "before " + t.bound, ""
	case 'E': // execute
		if writes(t.bound) {
			t.wrote = t.bound
			return "", "after " + t.bound
		}
	case 'S': // sync, which commits what was not begun as a transaction that lasts
		if !t.within {
			return t.commit()
		}
	case 'Q': // query
		return t.query(tidy(bytes.TrimSuffix(said, []byte{0})))
	}
	return "", ""
}

func (t *talk) query(text string) (before, after string) {
	switch {
	case text == "commit":
		t.within = false
		return t.commit()
	case text == "rollback":
		t.within, t.wrote = false, ""
		return "", ""
	case strings.HasPrefix(text, "begin"):
		t.within = true
		return "before " + text, ""
	case writes(text):
		t.wrote = text
		return "before " + text, "after " + text
	}
	return "", ""
}

func (t *talk) commit() (before, after string) {
	wrote := t.wrote
	if t.wrote = ""; wrote == "" {
		return "", ""
	}
	return "before commit of " + wrote, "after commit of " + wrote
}

func tidy(text []byte) string { return strings.Join(strings.Fields(string(text)), " ") }

var (
	locks  = strings.NewReplacer("FOR UPDATE", "", "FOR NO KEY UPDATE", "")
	writ   = regexp.MustCompile(`(INSERT INTO|UPDATE|DELETE FROM|CREATE TABLE IF NOT EXISTS) \w+`)
	origin = regexp.MustCompile(`FROM [a-z]\w*`)
)

func writes(statement string) bool { return writ.MatchString(locks.Replace(statement)) }

// shortened returns a place with no more of its statement than tells one from most others.
func shortened(place string) string {
	for _, side := range []string{"before commit of ", "after commit of ", "before ", "after "} {
		statement, ok := strings.CutPrefix(place, side)
		if !ok {
			continue
		}
		if what := writ.FindAllString(locks.Replace(statement), -1); what != nil {
			return side + strings.Join(what, ", ")
		}
		if what := origin.FindString(statement); what != "" {
			return side + "SELECT " + what
		}
	}
	return place
}

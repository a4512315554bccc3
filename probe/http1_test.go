package probe_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

// front answers like backend, but has write put each answer on the connection; an error of it ends the connection. It counts
// the connections that were made to it.
func front(t *testing.T, backend *probetest.Server, write func(net.Conn, []byte) error) (url string, connections *atomic.Int64) {
	t.Helper()
	connections = new(atomic.Int64)
	url = listen(t, func(conn net.Conn) {
		defer conn.Close()
		connections.Add(1)
		in := bufio.NewReader(conn)
		for {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			resp, err := http.Post(backend.URL, "application/json", req.Body) //nolint:noctx // ends with the test
			if err != nil {
				return
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || write(conn, body) != nil {
				return
			}
		}
	})
	return url, connections
}

func plainAnswer(body []byte) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

var errHangUp = errors.New("hang up")

// A node is asked several things. However it puts its answers on the wire, it is up, and is not dialled more often than it
// makes necessary.
func TestAnswersHoweverTheyAreFramed(t *testing.T) {
	t.Parallel()
	const once, each = false, true
	for _, c := range []struct {
		name    string
		dialled bool // for each request
		write   func(net.Conn, []byte) error
	}{
		{"plain", once, func(conn net.Conn, body []byte) error {
			_, err := io.WriteString(conn, plainAnswer(body))
			return err
		}},
		{"byte by byte", once, func(conn net.Conn, body []byte) error {
			for _, b := range []byte(plainAnswer(body)) {
				if _, err := conn.Write([]byte{b}); err != nil {
					return err
				}
			}
			return nil
		}},
		{"in chunks with a trailer", once, func(conn net.Conn, body []byte) error {
			_, err := fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n%x\r\n%s\r\n%x;a=b\r\n%s\r\n0\r\nX: y\r\n\r\n",
				1, body[:1], len(body)-1, body[1:])
			return err
		}},
		{"behind interim answers", once, func(conn net.Conn, body []byte) error {
			_, err := io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n"+strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 9)+plainAnswer(body))
			return err
		}},
		{"with an empty line behind it", each, func(conn net.Conn, body []byte) error {
			_, err := io.WriteString(conn, plainAnswer(body)+"\r\n")
			return err
		}},
		{"with an answer to nothing behind it", each, func(conn net.Conn, body []byte) error {
			_, err := io.WriteString(conn, plainAnswer(body)+"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n")
			return err
		}},
		{"up to the end of the connection", each, func(conn net.Conn, body []byte) error {
			_, _ = fmt.Fprintf(conn, "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n%s", body)
			return errHangUp
		}},
		{"the last, it says", each, func(conn net.Conn, body []byte) error {
			_, err := io.WriteString(conn, strings.Replace(plainAnswer(body), "\r\n", "\r\nConnection: close\r\n", 1))
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			backend := probetest.EVM(t)
			url, connections := front(t, backend, c.write)
			r := prober().Probe(t.Context(), probe.Target{Kind: probe.KindEVM, URL: url, Timeout: 20 * time.Second})
			if r.Verdict != probe.Up || len(r.Warnings) > 0 {
				t.Errorf("%s, %+v, warnings %+v; want up", r.Verdict, r.Failure, r.Warnings)
			}
			want := int64(1)
			if c.dialled {
				want = int64(len(backend.Requests()))
			}
			if got := connections.Load(); got != want {
				t.Errorf("%d connections for %d requests, want %d", got, len(backend.Requests()), want)
			}
		})
	}
}

func TestInterimAnswersWithoutEnd(t *testing.T) {
	t.Parallel()
	url := listen(t, func(conn net.Conn) {
		defer conn.Close()
		for {
			if _, err := io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"); err != nil {
				return
			}
		}
	})
	r := prober().Probe(t.Context(), probe.Target{Kind: probe.KindEVM, URL: url, Timeout: 20 * time.Second})
	if r.Verdict != probe.Down || r.Failure.Class != probe.ClassBodyTooLarge {
		t.Errorf("%s, %+v; want down with body_too_large", r.Verdict, r.Failure)
	}
}

// A server may refuse a request from its first bytes on, and leave the rest where it is.
func TestAnswerToARequestThatNobodyReads(t *testing.T) {
	t.Parallel()
	url := listen(t, func(conn net.Conn) {
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
		<-t.Context().Done()
	})
	target := probe.Target{Kind: probe.KindJSONRPC, URL: url, Method: "echo", Timeout: 20 * time.Second}
	target.Params = json.RawMessage(`["` + strings.Repeat("x", 60<<10) + `"]`)
	r := prober().Probe(t.Context(), target)
	if r.Verdict != probe.Down || r.Failure.Class != probe.ClassHTTPStatus || r.Failure.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("%s, %+v; want down with http_status 413", r.Verdict, r.Failure)
	}
}

// exchanged is what a client makes of the bytes that a server sends. What is wrong with them is said in words of its own.
type exchanged struct {
	Status, Proto string
	Header        http.Header
	Trailer       http.Header
	Body          string
	Refused       bool // there is no answer
	Broken        bool // its body has no end
}

// exchangeOver sends one request on a connection whose other end answers it with stream and hangs up.
func exchangeOver(t *testing.T, stream []byte, connect func(net.Conn) (probe.Carrier, error)) exchanged {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		req, err := http.ReadRequest(bufio.NewReader(theirs))
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		_, _ = theirs.Write(stream)
	}()
	c, err := connect(ours)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://node.example/", strings.NewReader(`{"jsonrpc":"2.0"}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.RoundTrip(req)
	if err != nil {
		return exchanged{Refused: true}
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return exchanged{Status: resp.Status} // net/http hands over the connection itself
	}
	body, err := io.ReadAll(resp.Body)
	return exchanged{resp.Status, resp.Proto, resp.Header, resp.Trailer, string(body), false, err != nil}
}

// What a check makes of an answer is what net/http makes of it.
func FuzzHTTP1(f *testing.F) {
	for _, seed := range []string{
		plainAnswer([]byte(`{"jsonrpc":"2.0","id":"1","result":"0x1"}`)),
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.0 200\r\n\r\nabc", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "HTTP/1.1 101 X\r\n\r\nabc", "\x15\x03\x01", "",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", "HTTP/1.1 200 OK\nA: b\n c\n\nabc",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 5000) + "\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	const header = 4 << 10
	f.Fuzz(func(t *testing.T, stream []byte) {
		got := exchangeOver(t, stream, func(conn net.Conn) (probe.Carrier, error) { return probe.NewHTTP1(conn, header), nil })
		want := exchangeOver(t, stream, func(conn net.Conn) (probe.Carrier, error) {
			transport := &http.Transport{
				DialContext:            func(context.Context, string, string) (net.Conn, error) { return conn, nil },
				DisableCompression:     true,
				MaxResponseHeaderBytes: header,
			}
			return transport.NewClientConn(t.Context(), "http", "node.example:80")
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("to %q (-net/http +ours):\n%s", stream, diff)
		}
	})
}

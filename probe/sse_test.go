package probe_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
)

func TestEventStream(t *testing.T) {
	for name, tc := range map[string]struct {
		in         string
		events     []string
		unfinished bool
	}{
		"one event":                        {"data: a\n\n", []string{"|a"}, false},
		"carriage returns":                 {"data: a\r\rdata: b\r\r", []string{"|a", "|b"}, false},
		"both":                             {"data: a\r\n\r\ndata: b\r\n\r\n", []string{"|a", "|b"}, false},
		"a byte order mark":                {"\xEF\xBB\xBFdata: a\n\n", []string{"|a"}, false},
		"a byte order mark only once":      {"\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\ndata: b\n\n", []string{"|b"}, false},
		"lines without a colon":            {"data\ndata\nfoo\n\n", []string{"|\n"}, false},
		"comments":                         {": ping\n\n:\ndata: a\n: in between\n\n", []string{"|a"}, false},
		"several lines of data":            {"data: a\ndata:  b\ndata:c\n\n", []string{"|a\n b\nc"}, false},
		"an event with empty data":         {"id: 7\ndata: \n\ndata: a\n\n", []string{"|", "|a"}, false},
		"an event without data is none":    {"event: ping\n\ndata: a\n\n", []string{"|a"}, false},
		"names, ids and retry":             {"event: message\nid: 1\nretry: 10\ndata: a\n\n", []string{"message|a"}, false},
		"the name does not stay":           {"event: x\ndata: a\n\ndata: b\n\n", []string{"x|a", "|b"}, false},
		"the last event lacks its end":     {"data: a\n\ndata: b\n", []string{"|a"}, true},
		"the last line lacks its end":      {"data: a\n\ndata: b", []string{"|a"}, true},
		"field names know case and spaces": {"Data: a\n data: b\n\n", nil, false},
		"nothing":                          {"", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(tc.in), iotest.OneByteReader(strings.NewReader(tc.in))} {
				events, unfinished, err := probe.ReadEvents(in, 1000)
				if diff := cmp.Diff(tc.events, events); diff != "" || unfinished != tc.unfinished || !errors.Is(err, io.EOF) {
					t.Errorf("%q: unfinished %t, error %v, events (-want +got):\n%s", tc.in, unfinished, err, diff)
				}
			}
		})
	}
}

func TestEventStreamIsBounded(t *testing.T) {
	for _, in := range []string{"data: " + strings.Repeat("x", 2000), strings.Repeat("data: x\n", 300), strings.Repeat(": x\n", 500)} {
		if _, _, err := probe.ReadEvents(strings.NewReader(in), 1000); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%.20q…: error %v, want one about the limit", in, err)
		}
	}
}

func TestEventsDoNotWaitForMore(t *testing.T) {
	in, out := io.Pipe()
	defer in.Close()
	go func() {
		_, _ = out.Write([]byte("data: a\r\r")) // the reader must not wait for the LF that may follow
		out.CloseWithError(io.ErrNoProgress)
	}()
	events, _, err := probe.ReadEvents(in, 1000)
	if len(events) != 1 || !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("events %q, error %v", events, err)
	}
}

func TestWhereAStreamMayBeTakenUp(t *testing.T) {
	for in, want := range map[string]probe.Place{
		"":                                  {},
		"id: a\n\n":                         {ID: "a"},
		"id: a\ndata\n\nid: b\ndata: 1\n\n": {ID: "b"},
		"id: a\ndata\n\ndata: 1\n\n":        {ID: "a"}, // an event without an id keeps that of the one before
		"id: a\n\nid: b\n":                  {ID: "a"}, // an event that no blank line ends does not count
		"id: a\n\nid\n\n":                   {},
		"id: a\n\nid: b\x00c\n\n":           {ID: "a"}, // such a field is ignored
		"id: a\tb\n\n":                      {ID: "a\tb"},
		"id: " + strings.Repeat("x", 2000) + "\n\n": {},
		"retry: 500\nid: a\n\n":                     {ID: "a", Retry: 500},
		"retry: 500\n\nretry: 7\n":                  {Retry: 7},
		"retry: -1\nretry: 1.5\nretry: x\n\n":       {},
		"retry: 99999999999999\n\n":                 {},
		"retry: 2000000000\n\n":                     {Retry: 3600_000},
	} {
		if got := probe.PlaceOf(in); got != want {
			t.Errorf("%.60q: got %+v, want %+v", in, got, want)
		}
	}
}

func FuzzEventStream(f *testing.F) {
	f.Add([]byte("event: message\r\nid: 1\r\ndata: {}\r\n\r\n"))
	f.Add([]byte("\xEF\xBB\xBFdata\rdata: a\n\n:x\n\ndata: b"))
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, unfinished, err := probe.ReadEvents(bytes.NewReader(in), 1<<10)
		torn, unfinishedTorn, errTorn := probe.ReadEvents(iotest.OneByteReader(bytes.NewReader(in)), 1<<10)
		if diff := cmp.Diff(whole, torn); diff != "" || unfinished != unfinishedTorn || !errors.Is(err, errTorn) {
			t.Errorf("%q reads differently one byte at a time:\n%s", in, diff)
		}
		for _, e := range whole {
			if strings.Contains(e, "\r") {
				t.Errorf("%q: event %q holds a carriage return", in, e)
			}
		}
	})
}

package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// conversation is a usual one: four requests, the last answered with some tools.
func conversation() []probe.Message {
	var messages []probe.Message
	for i := range 4 {
		messages = append(messages,
			probe.Message{Step: "step", Sent: true, At: time.Duration(i) * time.Millisecond, Head: "POST /mcp HTTP/1.1\nHost: a.example", Body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`},
			probe.Message{Step: "step", At: time.Duration(i) * time.Millisecond, Head: "HTTP/1.1 200 OK\nContent-Type: application/json", Body: `{"jsonrpc":"2.0","id":1,"result":{}}`})
	}
	var tools strings.Builder
	for i := range 50 {
		fmt.Fprintf(&tools, `{"name":"tool %d","description":"does the %d-th thing","inputSchema":{"type":"object"}},`, i, i)
	}
	messages[7].Body = tools.String()
	return messages
}

func TestATranscriptComesBackAsItWas(t *testing.T) {
	want := conversation()
	got, err := store.NewTranscript(want).Messages()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if store.NewTranscript(nil) != nil {
		t.Error("nothing said makes a transcript")
	}
	if got, err := store.Transcript("not compressed").Messages(); err == nil {
		t.Errorf("bytes that are no transcript are read as %v", got)
	}
}

// What a check costs more for its transcript.
func BenchmarkNewTranscript(b *testing.B) {
	messages := conversation()
	for b.Loop() {
		if len(store.NewTranscript(messages)) == 0 {
			b.Fatal("no transcript")
		}
	}
}

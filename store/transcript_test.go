package store_test

import (
	"fmt"
	"math/rand/v2"
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

// The name of a step may be a stranger's word, however long and however little it compresses.
func TestATranscriptOfLongSteps(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var messages []probe.Message
	for range 500 {
		step := make([]byte, 3000)
		for i := range step {
			step[i] = byte('!' + random.IntN(90))
		}
		messages = append(messages, probe.Message{Step: string(step), Body: "{}"})
	}
	got, err := store.NewTranscript(messages).Messages()
	if err != nil || len(got) != 500 {
		t.Fatalf("%d messages: %v", len(got), err)
	}
	for i, m := range got {
		if m.Step != messages[i].Step[:200] || m.Body != "{}" {
			t.Fatalf("message %d came back as %+v", i, m)
		}
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

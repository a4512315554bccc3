// Command a2a is a minimal A2A agent made with the official Go SDK, for the tests of Rollcall. Usage: a2a HOST:PORT
package main

import (
	"context"
	"iter"
	"log"
	"net/http"
	"os"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: a2a HOST:PORT")
	}
	addr := os.Args[1]
	card := &a2a.AgentCard{
		Name:        "go-agent-peer",
		Description: "Greets.",
		Version:     "1.0.0",
		SupportedInterfaces: []*a2a.AgentInterface{
			a2a.NewAgentInterface("http://"+addr+"/rpc", a2a.TransportProtocolJSONRPC),
		},
		DefaultInputModes:  []string{"text/plain"},
		DefaultOutputModes: []string{"text/plain"},
		Skills:             []a2a.AgentSkill{{ID: "greet", Name: "Greet", Description: "Greets.", Tags: []string{"greeting"}}},
	}
	mux := http.NewServeMux()
	mux.Handle("/rpc", a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(greeter{})))
	mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewStaticAgentCardHandler(card))
	log.Fatal(http.ListenAndServe(addr, mux))
}

// greeter answers every message with the same words. A probe sends none.
type greeter struct{}

func (greeter) Execute(context.Context, *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		yield(a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewTextPart("Hello.")), nil)
	}
}

func (greeter) Cancel(context.Context, *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(func(a2a.Event, error) bool) {}
}

package store

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// MaxHeads bounds how many heads of one chain are compared with each other.
const MaxHeads = 200

// maxChain bounds the id of a chain, in bytes; genesis hashes and names are far shorter.
const maxChain = 200

// ChainKey names a chain among all of them: two families may use the same id for chains of their own. Empty when there is
// no chain.
func ChainKey(kind probe.Kind, chain string) string {
	if chain == "" || kind == "" || kind == probe.KindAuto || len(chain) > maxChain {
		return ""
	}
	return string(kind) + " " + chain
}

// ChainOf returns the key of the chain that a target is known, or expected, to serve; empty when that is none.
func ChainOf(t probe.Target) string {
	if t.Memory.Head != nil && t.Memory.Head.Chain != "" {
		return ChainKey(t.Kind, t.Memory.Head.Chain)
	}
	return ChainKey(t.Kind, t.Options.Chain.ID)
}

// KeptHead is the head of a chain node as databases keep it apart from the state. Chain is empty when there is none.
type KeptHead struct {
	Chain string
	JSON  []byte
	At    time.Time
}

// EncodeHead returns the head that other nodes are compared with.
func EncodeHead(s State) (KeptHead, error) {
	head := s.Memory.Head
	if head == nil {
		return KeptHead{}, nil
	}
	chain := ChainKey(s.Kind, head.Chain)
	if chain == "" {
		return KeptHead{}, nil
	}
	text, err := json.Marshal(head)
	if err != nil {
		return KeptHead{}, fmt.Errorf("write head: %w", err)
	}
	return KeptHead{chain, text, Stamp(head.Seen)}, nil
}

// DecodeHead reads what EncodeHead wrote; name is that of the endpoint.
func DecodeHead(name string, text []byte) (probe.Head, error) {
	var h probe.Head
	if err := json.Unmarshal(text, &h); err != nil {
		return probe.Head{}, fmt.Errorf("read head: %w", err)
	}
	h.Endpoint = name
	return h, nil
}

// tidyMemory returns m as JSON and every database can keep it.
func tidyMemory(m probe.Memory) probe.Memory {
	if m.Head != nil {
		h := *m.Head
		for _, text := range []*string{&h.Endpoint, &h.Chain, &h.Hash, &h.Parent} {
			*text = clipRunes(CleanText(*text), maxChain)
		}
		for _, at := range []*time.Time{&h.Time, &h.Asked, &h.Seen, &h.Since} {
			*at = tidyTime(*at)
		}
		m.Head = &h
	}
	if m.Since != nil {
		since := tidyTime(*m.Since)
		m.Since = &since
	}
	return m
}

// tidyTime returns the zero time for a year that JSON cannot hold, so that no stranger's clock keeps a check from being
// kept.
func tidyTime(t time.Time) time.Time {
	if t = Stamp(t); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

// HeadChain returns the key of the chain that the head of a state belongs to; empty when there is none.
func HeadChain(s State) string {
	if s.Memory.Head == nil {
		return ""
	}
	return ChainKey(s.Kind, s.Memory.Head.Chain)
}

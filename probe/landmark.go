package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// landmark is how a family is asked for the block at a height. The newest blocks of two nodes are seldom the same one, and
// may differ for a moment on the best of chains: forks show at a block that both have had for a while.
type landmark struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`          // "$hex", "$int" and "$decimal" stand for the height
	Height value           `json:"height,omitzero"` // where the answer tells the height, to know that it was understood
	Hash   value           `json:"hash"`
}

// Mark is a block below the head.
type Mark struct {
	Height uint64 `json:"height"`
	Hash   string `json:"hash"`
}

// Where landmarks stand: at every sixteenth block, so that all endpoints of a chain tell of the same one, and at least so
// deep below the head. Two blocks is what a chain of 12 s needs; a faster one needs five seconds' worth.
const (
	landmarkEvery = 16
	landmarkDepth = 2
	landmarkAge   = 5 * time.Second
)

// landmarkAt returns the height of the landmark below a head, and whether there is one.
func landmarkAt(head uint64, pace time.Duration) (uint64, bool) {
	depth := uint64(landmarkDepth)
	if pace > 0 {
		depth = max(depth, uint64((landmarkAge+pace-1)/pace))
	}
	if head < depth+landmarkEvery {
		return 0, false
	}
	return (head - depth) / landmarkEvery * landmarkEvery, true
}

// askLandmark asks for the landmark below the head, when there is anybody to compare it with. A node that does not tell
// it is none the worse.
func (c *conversation) askLandmark(ctx context.Context, p *preset, v view) *Mark {
	height, ok := landmarkAt(v.head.Height, v.limits.pace)
	if !ok || p.Landmark == nil || len(v.peers) == 0 {
		return nil
	}
	a := c.ask(ctx, question{step: p.Landmark.Method + " landmark", method: p.Landmark.Method, params: p.Landmark.params(height)})
	if a.problem != nil {
		c.quieten(&a)
		return nil
	}
	d := newTree(a.result)
	if told, err := d.height(p.Landmark.Height); !p.Landmark.Height.isZero() && (err != nil || told != height) {
		return nil // it answers with another block than the one that was asked for
	}
	hash, err := d.text(p.Landmark.Hash)
	if err != nil || hash == "" {
		return nil
	}
	return &Mark{height, strings.ToLower(c.text(hash, maxFact))}
}

// params returns the parameters for a height.
func (l *landmark) params(height uint64) json.RawMessage {
	params := bytes.ReplaceAll(l.Params, []byte(`"$hex"`), fmt.Appendf(nil, `"0x%x"`, height))
	params = bytes.ReplaceAll(params, []byte(`"$int"`), strconv.AppendUint(nil, height, 10))
	return bytes.ReplaceAll(params, []byte(`"$decimal"`), fmt.Appendf(nil, `"%d"`, height))
}

// marksAt counts the peers by the block that they have at the landmark of this endpoint.
func (v view) marksAt(height uint64) map[string]int {
	votes := map[string]int{}
	for _, p := range v.peers {
		if p.Mark != nil && p.Mark.Height == height && p.Mark.Hash != "" {
			votes[p.Mark.Hash]++
		}
	}
	return votes
}

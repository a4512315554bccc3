package probe_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// evmNode is a node whose newest block is at a height, and whose blocks from fork on are others than everybody's; with
// deaf it answers every question about a block with the newest.
func evmNode(t *testing.T, height, fork uint64, deaf bool) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var q struct {
			ID     json.RawMessage
			Method string
			Params []any
		}
		_ = json.Unmarshal(body, &q) // the probe is trusted to write JSON
		block := func(number uint64) string {
			branch := "common"
			if number >= fork {
				branch = "forked"
			}
			return fmt.Sprintf(`{"number":"0x%x","hash":"0x%s%d","parentHash":"0x%s%d","timestamp":"0x%x"}`, number, branch, number, branch, number-1, time.Now().Unix())
		}
		result := "null"
		switch q.Method {
		case "eth_blockNumber":
			result = fmt.Sprintf(`"0x%x"`, height)
		case "eth_chainId":
			result = `"0x67932"`
		case "eth_syncing":
			result = "false"
		case "eth_getBlockByNumber":
			asked, _ := q.Params[0].(string)
			number, err := strconv.ParseUint(strings.TrimPrefix(asked, "0x"), 16, 64)
			switch {
			case asked == "latest" || deaf:
				result = block(height)
			case err == nil && number <= height:
				result = block(number)
			}
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, result)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// Nodes at different heights have no newest block in common. That one of them is on a fork shows at a block that all of
// them have.
func TestForksShowBelowTheHead(t *testing.T) {
	const deeper = " eth_getBlockByNumber finalized eth_getBlockByNumber safe eth_getBlockByNumber landmark"
	never := ^uint64(0)
	for _, c := range []struct {
		name  string
		nodes []string
		last  want // of the last one
	}{
		{"three of one chain", []string{evmNode(t, 1000, never, false), evmNode(t, 1003, never, false), evmNode(t, 1001, never, false)},
			want{verdict: probe.Up, steps: evmSteps + deeper}},
		{"one on a fork", []string{evmNode(t, 1000, never, false), evmNode(t, 1003, never, false), evmNode(t, 1001, 900, false)},
			want{verdict: probe.Degraded, step: "eth_getBlockByNumber", class: probe.ClassChainFork, message: "block 992 is 0xforked992 here and 0xcommon992 at 2 others",
				steps: strings.Replace(evmSteps, "eth_getBlockByNumber", "eth_getBlockByNumber!chain_fork", 1) + deeper}},
		{"two that disagree", []string{evmNode(t, 1003, never, false), evmNode(t, 1001, 900, false)},
			want{verdict: probe.Up, steps: evmSteps + deeper, warnings: []string{"eth_getBlockByNumber chain_fork"}}},
		{"one that hears no numbers", []string{evmNode(t, 1000, never, false), evmNode(t, 1003, never, false), evmNode(t, 1001, never, true)},
			want{verdict: probe.Up, steps: evmSteps + deeper}},
	} {
		t.Run(c.name, func(t *testing.T) {
			heads := make([]probe.Head, len(c.nodes))
			var r probe.Result
			for range 2 { // a node tells of its landmark once it knows of others
				for i, url := range c.nodes {
					target := probe.Target{Kind: probe.KindEVM, URL: url}
					for j, head := range heads {
						if j != i && head.Height > 0 {
							target.Peers = append(target.Peers, head)
						}
					}
					r = ask(t, target)
					heads[i] = *r.Memory.Head
				}
			}
			r.Warnings = ofClass(r.Warnings, probe.ClassChainFork)
			check(t, r, c.last)
		})
	}
}

// ofClass returns the warnings of one class.
func ofClass(warnings []probe.Warning, class probe.Class) []probe.Warning {
	var found []probe.Warning
	for _, w := range warnings {
		if w.Class == class {
			found = append(found, w)
		}
	}
	return found
}

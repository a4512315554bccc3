package probe_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// Every family has one file, every file is one family, and each reads without a rest.
func TestPresets(t *testing.T) {
	entries, err := os.ReadDir("presets")
	if err != nil {
		t.Fatal(err)
	}
	var files []probe.Kind
	for _, e := range entries {
		files = append(files, probe.Kind(strings.TrimSuffix(e.Name(), ".json")))
		raw, err := os.ReadFile("presets/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if err := probe.ReadPreset(raw); err != nil {
			t.Errorf("%s: %v", e.Name(), err)
		}
		if err := probe.ReadPreset(bytes.Replace(raw, []byte(`"need"`), []byte(`"needs"`), 1)); err == nil {
			t.Errorf("%s: a member that nobody knows was let in", e.Name())
		}
		if err := probe.ReadPreset(append(slices.Clone(raw), "{}"...)); err == nil {
			t.Errorf("%s: something behind the object was let in", e.Name())
		}
	}
	kinds := probe.Families()
	slices.Sort(kinds)
	if !slices.Equal(kinds, files) {
		t.Errorf("families %q, files %q", kinds, files)
	}
	for _, kind := range probe.Families() {
		if !slices.Contains(probe.Kinds(), kind) {
			t.Errorf("%s is no kind that a target may name", kind)
		}
	}
}

func TestPresetMistakes(t *testing.T) {
	const good = `{"kind":"x","title":"an X","unit":"block","transports":["http"],"starting_grace_s":1,
		"calls":[{"method":"a","need":"must","read":{"height":":int"}}],"default":{"lagging":1,"syncing":2}}`
	if err := probe.ReadPreset([]byte(good)); err != nil {
		t.Fatalf("%v", err)
	}
	for old, mistake := range map[string]string{
		`":int"`:                    `":integer"`,
		`"height":":int"`:           `"height":":text"`,
		`{"height":":int"}`:         `{}`,
		`"need":"must"`:             `"need":"may"`,
		`"method":"a",`:             ``,
		`"method":"a"`:              `"method":"a","get":"/a"`,
		`"title":"an X",`:           ``,
		`"lagging":1,"syncing":2`:   `"lagging":3,"syncing":2`,
		`"transports":["http"]`:     `"transports":[]`,
		`"starting_grace_s":1`:      `"starting_grace_s":1,"envelope":"xml"`,
		`"kind":"x"`:                `"kind":"x","errors":[{"class":"starting"}]`,
		`"unit":"block"`:            `"unit":"block","chains":[{"name":"a","id":"1","block_time_s":1},{"name":"a","id":"2","block_time_s":1}]`,
		`"height":":int"}`:          `"height":":int"},"findings":[{"path":"a","present":true,"class":"slowish"}]`,
		`"calls":[{"method":"a",`:   `"calls":[{"method":"a","must":["a"],`,
		`"title":"an X","unit"`:     `"title":"an X","instead":[{"url":"(","calls":[]}],"unit"`,
		`"syncing":2`:               `"syncing":2,"sync":1`,
		`"starting_grace_s":1,`:     `"starting_grace_s":1,"chains":[{"name":"a","id":"1"}],`,
		`"need":"must","read":{"he`: `"need":"must","read":{"time":":int","he`,
	} {
		if !strings.Contains(good, old) {
			t.Fatalf("%s is not in the preset", old)
		}
		if err := probe.ReadPreset([]byte(strings.Replace(good, old, mistake, 1))); err == nil {
			t.Errorf("%s was let in", mistake)
		}
	}
}

func TestChainPriors(t *testing.T) {
	for _, tc := range []struct {
		kind           probe.Kind
		chain          string
		blockTime      time.Duration
		degraded, down uint64
		known          bool
	}{
		{probe.KindEVM, "ethereum", 12 * time.Second, 1, 6, true},
		{probe.KindEVM, "1", 12 * time.Second, 1, 6, true},
		{probe.KindEVM, "0x38", 450 * time.Millisecond, 50, 1000, true},
		{probe.KindEVM, "opBNB", 250 * time.Millisecond, 200, 400, true},
		{probe.KindEVM, "arbitrum-one", 250 * time.Millisecond, 20, 40, true},
		{probe.KindEVM, "anvil", 0, 10, 40, true},
		{probe.KindEVM, "123456", 0, 10, 40, false},
		{probe.KindBitcoin, "bitcoin", 10 * time.Minute, 1, 3, true},
		{probe.KindSolana, "mainnet-beta", 400 * time.Millisecond, 100, 1000, true},
		{probe.KindCometBFT, "cosmoshub-4", 6 * time.Second, 5, 10, true},
		{probe.KindCometBFT, "some-chain-1", 6 * time.Second, 5, 10, false},
		{probe.KindTON, "-239", 3 * time.Second, 10, 40, true},
		{probe.KindStarknet, "SN_MAIN", 6 * time.Second, 10, 40, true},
		{probe.KindOgmios, "764824073", 20 * time.Second, 3, 20, true},
	} {
		blockTime, degraded, down, known := probe.ChainPriors(tc.kind, tc.chain)
		if blockTime != tc.blockTime || degraded != tc.degraded || down != tc.down || known != tc.known {
			t.Errorf("%s %s: %v %d %d %v", tc.kind, tc.chain, blockTime, degraded, down, known)
		}
	}
}

package probe_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
)

// BenchmarkManyPeers judges a head beside two hundred peers. x-one-peer is the ratio to one peer in the same run, which
// should be far below two hundred: most of a judgement is about the head itself.
func BenchmarkManyPeers(b *testing.B) {
	own := hashed(ago(0, 1000), "0xa", "0xb")
	peers := make([]probe.Head, 200)
	for i := range peers {
		peers[i] = hashed(ago(time.Second, 1000), "0xa", "0xb")
		peers[i].Origin = fmt.Sprintf("node-%d.example:443", i)
	}
	judge := func(peers []probe.Head, times int) time.Duration {
		began := time.Now()
		for range times {
			probe.JudgeHead(probe.KindEVM, own, probe.Memory{}, peers, probe.Chain{})
		}
		return time.Since(began)
	}
	var many, one time.Duration
	for b.Loop() {
		many += judge(peers, 100)
		one += judge(peers[:1], 100)
	}
	b.ReportMetric(float64(many)/float64(b.N)/100, "ns/judgement")
	b.ReportMetric(float64(many)/float64(one), "x-one-peer")
	b.ReportMetric(0, "ns/op") // an operation is a hundred judgements of each kind
}

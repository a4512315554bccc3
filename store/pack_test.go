package store_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// healthyMCP is a check of an MCP server over https as it goes well: the steps take from 200 µs to 300 ms, the first of
// them dials, and between them lies the time in which an answer is read and the next request is written.
func healthyMCP(random *rand.Rand) probe.Result {
	between := func(low, high time.Duration) time.Duration {
		return low + time.Duration(random.Int64N(int64(high-low)))
	}
	expires, tools := start.Add(60*24*time.Hour), 13
	r := probe.Result{
		StartedAt: start.Add(between(0, 10*time.Millisecond)), Kind: probe.KindMCP, Era: probe.EraLegacy, Verdict: probe.Up,
		Facts: probe.Facts{
			ProtocolVersion: "2025-11-25", ServerName: "weather", ServerVersion: "1.4.2", Tools: &tools, Era: probe.EraLegacy,
			Contract: "sha256:" + strings.Repeat("ab", 32), TLSExpiresAt: &expires, RemoteAddr: "203.0.113.7:443",
		},
	}
	at := between(0, 60*time.Microsecond)
	for i, name := range []string{"initialize", "initialized", "tools/list", "close"} {
		answer := time.Duration(float64(200*time.Microsecond) * math.Pow(1500, random.Float64()))
		s := probe.Step{
			Name: name, Method: name, Start: at, HTTPStatus: 200, BytesOut: 150,
			Phases: probe.Phases{Body: between(0, 800*time.Microsecond), FirstByte: answer},
		}
		if i == 0 {
			s.Phases.DNS, s.Phases.Connect = between(0, 20*time.Millisecond), between(0, 80*time.Millisecond)
			s.Phases.TLS = between(0, 160*time.Millisecond)
		}
		if i == 0 || i == 2 {
			s.BytesIn = 200 + random.Int64N(12_000)
		}
		p := s.Phases
		s.Latency = p.DNS + p.Connect + p.TLS + p.FirstByte + p.Body + between(0, 110*time.Microsecond)
		r.Steps = append(r.Steps, s)
		at += s.Latency
		if name != "close" {
			r.Duration = at + between(0, 20*time.Microsecond)
		}
		at += between(0, 120*time.Microsecond)
	}
	return r
}

// healthyChain is a check of an Ethereum node over https with some steps.
func healthyChain(random *rand.Rand, steps int) probe.Result {
	r := healthyMCP(random)
	r.Kind, r.Era = "evm", ""
	r.Steps = r.Steps[:steps]
	for i := range r.Steps {
		r.Steps[i].Name = []string{"eth_chainId", "eth_syncing", "eth_getBlockByNumber", "eth_blockNumber"}[i]
		r.Steps[i].Method = r.Steps[i].Name
	}
	last := r.Steps[steps-1]
	r.Duration = last.Start + last.Latency + time.Microsecond
	height, lag := 20_831_387+random.Uint64N(1000), random.Int64N(3)
	finalized, at := height-64-random.Uint64N(32), start.Add(-time.Duration(random.Int64N(24))*time.Second)
	r.Facts = probe.Facts{
		Height: &height, Finalized: &finalized, LagBlocks: &lag, HeadTime: &at, ChainID: "1", RemoteAddr: "203.0.113.7:443",
		HeadHash: fmt.Sprintf("0x%016x%016x%016x%016x", random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64()),
	}
	return r
}

func TestTheNumbersOfAHealthyCheckAreFew(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const hash = 1 + 32 // and its length
	tests := []struct {
		name string
		make func() probe.Result
		most int
	}{
		{"mcp", func() probe.Result { return healthyMCP(random) }, 28},
		{"evm of 1 step", func() probe.Result { return healthyChain(random, 1) }, 24 + hash},
		{"evm of 2 steps", func() probe.Result { return healthyChain(random, 2) }, 28 + hash},
		{"evm of 4 steps", func() probe.Result { return healthyChain(random, 4) }, 35 + hash},
	}
	for _, test := range tests {
		const checks = 500
		sum, most := 0, 0
		shapes := map[int32]bool{}
		for range checks {
			p, err := store.Pack(test.make(), start)
			if err != nil {
				t.Fatal(err)
			}
			sum, most = sum+len(p.Numbers), max(most, len(p.Numbers))
			shapes[p.ShapeID] = true
		}
		t.Logf("%s: numbers of %.1f bytes, at most %d", test.name, float64(sum)/checks, most)
		if most > test.most {
			t.Errorf("%s: numbers of %d bytes, want at most %d", test.name, most, test.most)
		}
		if len(shapes) != 1 {
			t.Errorf("%s: %d shapes of %d healthy checks, want one", test.name, len(shapes), checks)
		}
	}
}

func TestAPackedResultComesBackRounded(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	check := func(r probe.Result, scheduledAt time.Time) {
		t.Helper()
		tidy, err := store.TidyChecks([]store.Check{{Result: r, ScheduledAt: scheduledAt}})
		if err != nil {
			t.Fatal(err)
		}
		r, scheduledAt = tidy[0].Result, tidy[0].ScheduledAt
		p, err := store.Pack(r, scheduledAt)
		if err != nil {
			t.Fatal(err)
		}
		got, err := store.Unpack(scheduledAt, p.Verdict, p.Latencies, p.Numbers, p.Shape)
		if err != nil {
			t.Fatalf("unpack %+v: %v", r, err)
		}
		if diff := cmp.Diff(got, store.Rounded(r)); diff != "" {
			t.Fatalf("scheduled at %s (-got +want):\n%s", scheduledAt, diff)
		}
		if len(p.Latencies) != 4*len(r.Steps) {
			t.Fatalf("%d bytes of latencies for %d steps", len(p.Latencies), len(r.Steps))
		}
	}
	for range 500 {
		check(healthyMCP(random), start)
		check(healthyChain(random, 1+random.IntN(4)), start.Add(time.Duration(random.Int64N(1e12))))
		check(anyResult(random), time.UnixMicro(random.Int64N(1<<52)-1<<51))
	}
}

// TestRoundingTakesLittle holds Rounded against what it was given, so that the test above says something.
func TestRoundingTakesLittle(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	near := func(what string, got, want, within time.Duration) {
		t.Helper()
		if d := got - want; d > within || d < -within {
			t.Fatalf("%s: %s became %s", what, want, got)
		}
	}
	const tick = 10 * time.Microsecond
	for range 1000 {
		r := healthyMCP(random)
		got := store.Rounded(r)
		near("started at", got.StartedAt.Sub(start), r.StartedAt.Sub(start), tick)
		near("duration", got.Duration, r.Duration, time.Microsecond/2)
		for i, s := range got.Steps {
			want := r.Steps[i]
			near("latency", s.Latency, want.Latency, time.Microsecond/2)
			near("start", s.Start, want.Start, tick/2)
			near("dns", s.Phases.DNS, want.Phases.DNS, tick/2)
			near("connect", s.Phases.Connect, want.Phases.Connect, tick/2)
			near("tls", s.Phases.TLS, want.Phases.TLS, tick/2)
			near("first byte", s.Phases.FirstByte, want.Phases.FirstByte, tick/2)
			near("body", s.Phases.Body, want.Phases.Body, tick/2)
			got.Steps[i].Start, got.Steps[i].Latency, got.Steps[i].Phases = want.Start, want.Latency, want.Phases
		}
		got.StartedAt, got.Duration = r.StartedAt, r.Duration
		if diff := cmp.Diff(got, r); diff != "" {
			t.Fatalf("more than times changed (-got +want):\n%s", diff)
		}
	}
}

// anyResult is a result with whatever in it.
func anyResult(random *rand.Rand) (r probe.Result) {
	fillAny(random, reflect.ValueOf(&r).Elem())
	r.Verdict = probe.Verdicts()[random.IntN(5)]
	r.StartedAt = time.UnixMicro(random.Int64N(1<<52) - 1<<51)
	for _, at := range []**time.Time{&r.Facts.HeadTime, &r.Facts.TLSExpiresAt} {
		if *at != nil {
			when := time.UnixMicro(random.Int64N(1<<52) - 1<<51)
			*at = &when
		}
	}
	return r
}

// fillAny puts random values into v and all its members: hostile ones where they come from an endpoint.
func fillAny(random *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		texts := []string{
			"", "tools/list", "close", "0x", "0xab", "0xABCD", "abc", "00ff", "0x" + strings.Repeat("1f", 32), "\xff\x00<&>\u2028",
			strings.Repeat("ж", 300),
		}
		switch v.Type() {
		case reflect.TypeFor[probe.Class]():
			texts = []string{"", "timeout", "rpc_error"}
		case reflect.TypeFor[probe.Era]():
			texts = []string{"", "modern", "legacy"}
		}
		v.SetString(texts[random.IntN(len(texts))])
	case reflect.Int, reflect.Int64:
		v.SetInt(anyNumber(random))
	case reflect.Uint64:
		v.SetUint(uint64(anyNumber(random)))
	case reflect.Bool:
		v.SetBool(random.IntN(2) == 0)
	case reflect.Pointer:
		if random.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			if v.Type().Elem() != reflect.TypeFor[time.Time]() && v.Type().Elem() != reflect.TypeFor[probe.Contract]() {
				fillAny(random, v.Elem())
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), random.IntN(4), 4))
		for i := range v.Len() {
			fillAny(random, v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() || v.Type() == reflect.TypeFor[probe.Memory]() {
			return
		}
		for i := range v.NumField() {
			fillAny(random, v.Field(i))
		}
	}
}

// anyNumber is small or large, of either sign.
func anyNumber(random *rand.Rand) int64 {
	n := random.Int64() >> random.IntN(64)
	if random.IntN(3) == 0 {
		n = -n
	}
	if random.IntN(20) == 0 {
		return []int64{math.MinInt64, math.MaxInt64}[random.IntN(2)]
	}
	return n
}

// TestEachMemberOfAResultIsPacked changes one member at a time. It fails for a member of probe.Facts, say, that comes to
// be and is not packed: what two checks have not in common must be in their numbers or tell their shapes apart.
func TestEachMemberOfAResultIsPacked(t *testing.T) {
	left := map[string]bool{ // kept elsewhere
		".Contract": true, ".Memory": true, ".Transcript": true,
	}
	base := func() probe.Result {
		r := healthyChain(rand.New(rand.NewPCG(1, 1)), 2)
		number, yes, at := 3, true, start
		r.Verdict, r.Failure = probe.Degraded, &probe.Failure{Step: "a", Class: "timeout", Code: 1, Message: "b"}
		r.Warnings = []probe.Warning{{Step: "a", Class: "timeout", Code: 1, Message: "b"}}
		r.Facts.Tools, r.Facts.Prompts, r.Facts.Resources, r.Facts.Syncing = &number, &number, &number, &yes
		r.Facts.SupportedVersions, r.Facts.TLSExpiresAt = []string{"a"}, &at
		return r
	}
	pack := func(r probe.Result) store.Packed {
		p, err := store.Pack(r, start)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	before := pack(base())
	var members int
	var visit func(path string, reach func(*probe.Result) reflect.Value)
	visit = func(path string, reach func(*probe.Result) reflect.Value) {
		if left[path] {
			return
		}
		r := base()
		v := reach(&r)
		switch {
		case v.Kind() == reflect.Pointer:
			if v.IsNil() {
				t.Errorf("%s is nil in the base of this test", path)
				return
			}
			visit(path+"*", func(r *probe.Result) reflect.Value { return reach(r).Elem() })
			v.SetZero()
		case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]():
			for i := range v.NumField() {
				visit(path+"."+v.Type().Field(i).Name, func(r *probe.Result) reflect.Value { return reach(r).Field(i) })
			}
			return
		case v.Kind() == reflect.Slice:
			visit(path+"[0]", func(r *probe.Result) reflect.Value { return reach(r).Index(0) })
			v.Set(v.Slice(0, 0))
		case v.Type() == reflect.TypeFor[time.Time]():
			v.Set(reflect.ValueOf(v.Interface().(time.Time).Add(time.Hour)))
		case v.Type() == reflect.TypeFor[time.Duration]():
			v.SetInt(v.Int() + int64(time.Millisecond))
		case v.Type() == reflect.TypeFor[probe.Verdict]():
			v.SetString(string(probe.Down))
		case v.Kind() == reflect.String:
			v.SetString(v.String() + "x")
		case v.Kind() == reflect.Bool:
			v.SetBool(!v.Bool())
		case v.CanInt():
			v.SetInt(v.Int() + 1)
		case v.CanUint():
			v.SetUint(v.Uint() + 1)
		default:
			t.Errorf("%s: this test knows nothing of %s", path, v.Type())
			return
		}
		members++
		after := pack(r)
		if (after.ShapeID == before.ShapeID) != bytes.Equal(after.Shape, before.Shape) {
			t.Errorf("%s: ids %x and %x for the shapes\n%s\n%s", path, after.ShapeID, before.ShapeID, after.Shape, before.Shape)
		}
		got, err := store.Unpack(start, after.Verdict, after.Latencies, after.Numbers, after.Shape)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if diff := cmp.Diff(got, store.Rounded(r)); diff != "" {
			t.Errorf("%s (-got +want):\n%s", path, diff)
		}
		if cmp.Equal(got, store.Rounded(base())) {
			t.Errorf("%s is lost", path)
		}
	}
	visit("", func(r *probe.Result) reflect.Value { return reflect.ValueOf(r).Elem() })
	if members < 60 {
		t.Errorf("%d members were changed, want all of a result", members)
	}
}

func TestAShapeKeepsItsID(t *testing.T) {
	r := healthyMCP(rand.New(rand.NewPCG(1, 2)))
	// What is in databases hangs on these: a change of either is a mistake.
	const (
		id    = 584710459
		shape = `{"kind":"mcp","era":"legacy","steps":[` +
			`{"name":"initialize","method":"initialize","http_status":200,"class":"","code":0,"message":"","bytes_out":150},` +
			`{"name":"initialized","method":"initialized","http_status":200,"class":"","code":0,"message":"","bytes_out":150},` +
			`{"name":"tools/list","method":"tools/list","http_status":200,"class":"","code":0,"message":"","bytes_out":150},` +
			`{"name":"close","method":"close","http_status":200,"class":"","code":0,"message":"","bytes_out":150}],` +
			`"facts":{"protocol_version":"2025-11-25","era":"legacy","server_name":"weather","server_version":"1.4.2","tools":13,` +
			`"contract":"sha256:abababababababababababababababababababababababababababababababab",` +
			`"tls_expires_at":"2027-01-20T08:20:00Z","remote_addr":"203.0.113.7:443"}}`
	)
	p, err := store.Pack(r, start)
	if err != nil {
		t.Fatal(err)
	}
	if p.ShapeID != id || string(p.Shape) != shape {
		t.Errorf("shape %d\n%s\nwant %d\n%s", p.ShapeID, p.Shape, id, shape)
	}
	bare, err := store.PackBare(r, start)
	if err != nil || bare.Shape != nil {
		t.Errorf("PackBare = %+v, %v, want no shape", bare, err)
	}
	p.Shape = nil
	if diff := cmp.Diff(bare, p); diff != "" {
		t.Errorf("PackBare (-got +want from Pack):\n%s", diff)
	}
}

func TestLatenciesCanBeReadInSQL(t *testing.T) {
	p, err := store.PackBare(probe.Result{Verdict: probe.Up, Steps: []probe.Step{
		{Latency: 31*time.Millisecond + 200*time.Nanosecond}, {Latency: 3 * time.Hour}, {Latency: -1},
	}}, start)
	if err != nil {
		t.Fatal(err)
	}
	var got []uint32
	for i := 0; i < len(p.Latencies); i += 4 {
		got = append(got, binary.BigEndian.Uint32(p.Latencies[i:]))
	}
	if diff := cmp.Diff(got, []uint32{31_000, math.MaxUint32, 0}); diff != "" {
		t.Errorf("latencies in microseconds (-got +want):\n%s", diff)
	}
}

func TestVerdictsHaveLetters(t *testing.T) {
	seen := map[byte]bool{}
	for _, v := range probe.Verdicts() {
		code := store.VerdictCode(v)
		if back, ok := store.VerdictOf(code); !ok || back != v || seen[code] {
			t.Errorf("%s is %q, which is %s %v", v, code, back, ok)
		}
		seen[code] = true
	}
	if code := store.VerdictCode("fine"); code != 0 {
		t.Errorf("what is no verdict has the letter %q", code)
	}
	if v, ok := store.VerdictOf('U'); ok {
		t.Errorf("U is %s, want nothing", v)
	}
	if _, err := store.Pack(probe.Result{Verdict: "fine"}, start); err == nil {
		t.Error("a result without a verdict was packed")
	}
}

// TestARowOfTheFirstSchemaIsRead builds the shape as SQL does when rows are carried over: the columns as they were, side by
// side, without numbers.
func TestARowOfTheFirstSchemaIsRead(t *testing.T) {
	for _, r := range []probe.Result{
		healthyMCP(rand.New(rand.NewPCG(9, 9))), healthyChain(rand.New(rand.NewPCG(9, 9)), 4),
		{
			StartedAt: start, Verdict: probe.Down, Kind: probe.KindMCP, Duration: 1500 * time.Microsecond, RetryAfter: time.Minute,
			Failure:  &probe.Failure{Step: "initialize", Class: probe.ClassHTTPStatus, Code: 503, Message: "busy"},
			Warnings: []probe.Warning{{Step: "initialize", Class: probe.ClassContentType, Message: "text/html"}},
		},
	} {
		tidy, err := store.TidyChecks([]store.Check{{Result: r}})
		if err != nil {
			t.Fatal(err)
		}
		r = tidy[0].Result
		steps, warnings, facts, err := store.EncodeResult(r)
		if err != nil {
			t.Fatal(err)
		}
		columns := map[string]any{
			"kind": r.Kind, "era": r.Era, "steps": json.RawMessage(steps), "warnings": json.RawMessage(warnings),
			"facts": json.RawMessage(facts), "started_at": r.StartedAt, "duration_ms": store.Milliseconds(r.Duration),
			"retry_after_ms": store.Milliseconds(r.RetryAfter), "failure": nil,
		}
		if f := r.Failure; f != nil {
			columns["failure"] = map[string]any{"step": f.Step, "class": f.Class, "code": f.Code, "message": f.Message}
		}
		shape, err := json.Marshal(columns)
		if err != nil {
			t.Fatal(err)
		}
		got, err := store.Unpack(start, store.VerdictCode(r.Verdict), []byte("passed over"), nil, shape)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, r); diff != "" {
			t.Errorf("(-got +want):\n%s", diff)
		}
	}
}

func TestARowThatDoesNotSayWhenItStartedDidAsScheduled(t *testing.T) {
	got, err := store.Unpack(start, 'x', nil, nil, []byte(`{"kind":"evm","started_at":null}`))
	if err != nil || !got.StartedAt.Equal(start) || got.Verdict != probe.Down || got.Kind != "evm" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestBrokenRowsAreErrors(t *testing.T) {
	p, err := store.Pack(healthyChain(rand.New(rand.NewPCG(1, 2)), 2), start)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n < len(p.Numbers); n++ {
		if r, err := store.Unpack(start, p.Verdict, p.Latencies, p.Numbers[:n], p.Shape); err == nil {
			t.Errorf("the first %d bytes of the numbers are read as %+v", n, r)
		}
	}
	longer := append(bytes.Clone(p.Numbers), 0)
	other := append([]byte{p.Numbers[0] + 0x10}, p.Numbers[1:]...)
	for name, unpack := range map[string]func() (probe.Result, error){
		"numbers with more behind":   func() (probe.Result, error) { return store.Unpack(start, 'u', p.Latencies, longer, p.Shape) },
		"numbers of a later version": func() (probe.Result, error) { return store.Unpack(start, 'u', p.Latencies, other, p.Shape) },
		"a latency too few":          func() (probe.Result, error) { return store.Unpack(start, 'u', p.Latencies[:4], p.Numbers, p.Shape) },
		"no verdict":                 func() (probe.Result, error) { return store.Unpack(start, 0, p.Latencies, p.Numbers, p.Shape) },
		"no shape":                   func() (probe.Result, error) { return store.Unpack(start, 'u', p.Latencies, p.Numbers, nil) },
	} {
		if r, err := unpack(); err == nil {
			t.Errorf("%s: read as %+v", name, r)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, r := range []probe.Result{healthyMCP(random), healthyChain(random, 1), healthyChain(random, 4), {Verdict: probe.Down}} {
		p, err := store.Pack(r, start)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(start.UnixMicro(), p.Verdict, p.Latencies, p.Numbers, p.Shape)
		f.Add(start.UnixMicro(), p.Verdict, p.Latencies, []byte(nil), p.Shape)
	}
	f.Add(int64(0), byte('x'), []byte{255, 255, 255, 255}, []byte{0x17, 0, 0xff, 2, 4, 1, 1},
		[]byte(`{"steps":[{"start_ms":1e300,"phases":null}],"failure":{}}`))
	f.Fuzz(func(t *testing.T, scheduled int64, verdict byte, latencies, numbers, shape []byte) {
		at := time.UnixMicro(scheduled).UTC()
		r, err := store.Unpack(at, verdict, latencies, numbers, shape)
		if err != nil {
			return
		}
		if len(r.Facts.HeadHash) > 2+2*len(numbers)+len(shape) || len(r.Steps) > len(shape) {
			t.Errorf("%d bytes of numbers and %d of shape became %+v", len(numbers), len(shape), r)
		}
		p, err := store.Pack(store.Rounded(r), at)
		if err != nil {
			t.Fatalf("what was unpacked cannot be packed: %v", err)
		}
		if again, err := store.Unpack(at, p.Verdict, p.Latencies, p.Numbers, p.Shape); err != nil {
			t.Fatalf("what was packed again cannot be unpacked: %v, %+v", err, again)
		}
	})
}

// The parts of packing a check of an MCP server, of which Shape is not part of every check.
func BenchmarkPack(b *testing.B) {
	r := healthyMCP(rand.New(rand.NewPCG(1, 2)))
	p, err := store.Pack(r, start)
	if err != nil {
		b.Fatal(err)
	}
	parts := map[string]func() error{
		"bare":     func() error { _, err := store.PackBare(r, start); return err },
		"shape":    func() error { _, err := store.EncodeShape(r); return err },
		"shape id": func() error { store.ShapeID(r); return nil },
		"unpack": func() error {
			_, err := store.Unpack(start, p.Verdict, p.Latencies, p.Numbers, p.Shape)
			return err
		},
	}
	for name, part := range parts {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := part(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

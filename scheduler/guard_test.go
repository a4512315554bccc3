package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/scheduler"
	"github.com/rollcallhq/rollcall/store"
)

// location is a place whose network can be cut, with what it was asked and what it told.
type location struct {
	*world
	registry *prometheus.Registry
	log      bytes.Buffer
	cut      atomic.Bool // no network at all
	dials    atomic.Int64
	broken   sync.Map // URLs that fail for reasons of their own
	fixed    sync.Map // URLs and the results of asking them
	late     sync.Map // URLs that take 14 seconds to fail

	mu   sync.Mutex
	told []string
}

var errNoRoute = errors.New("no route to host")

// locate runs a scheduler with two references that answer unless the network is cut.
func locate(t *testing.T, references ...string) *location {
	t.Helper()
	l := &location{registry: prometheus.NewRegistry()}
	if references == nil {
		references = []string{"192.0.2.1:53", "one.example:443"}
	}
	l.world = startWith(t, scheduler.Config{
		Concurrency: 1000, Registerer: l.registry, Log: slog.New(slog.NewTextHandler(&l.log, nil)),
		References: references,
		DialReference: func(ctx context.Context, network, addr string) (net.Conn, error) {
			l.dials.Add(1)
			if network != "tcp" {
				t.Errorf("dialled %s on %s", addr, network)
			}
			if !l.cut.Load() && addr != "192.0.2.1:53" {
				ours, theirs := net.Pipe()
				_ = theirs.Close()
				return ours, nil
			}
			<-ctx.Done()
			return nil, errNoRoute
		},
		Offline: func(_ context.Context, offline bool, since time.Time) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.told = append(l.told, fmt.Sprintf("%t since %s", offline, since.Format("15:04:05")))
		},
	}, l.answer)
	return l
}

// answer fails without a network, and at addresses near by does not need one.
func (l *location) answer(ctx context.Context, target probe.Target) probe.Result {
	time.Sleep(20 * time.Millisecond)
	if r, ok := l.fixed.Load(target.URL); ok {
		return r.(probe.Result)
	}
	if _, broken := l.broken.Load(target.URL); broken {
		return networkFailure(probe.ClassConnect, "connection refused")
	}
	if _, late := l.late.Load(target.URL); late {
		time.Sleep(14 * time.Second)
		return networkFailure(probe.ClassTimeout, "no connection after 14s")
	}
	remote := "198.51.100.7:443"
	if host := hostOf(target.URL); host != "" {
		remote = host
	} else if l.cut.Load() {
		return networkFailure(probe.ClassDNS, "no answer about the address of the host")
	}
	r := up(ctx, target)
	r.Facts.RemoteAddr = remote
	r.Steps = []probe.Step{{Name: "initialize", HTTPStatus: 200}}
	return r
}

// hostOf returns the address in a URL whose host is one, with a port; empty when it is a name.
func hostOf(url string) string {
	host := strings.Split(strings.TrimPrefix(url, "http://"), "/")[0]
	if addr, err := netip.ParseAddr(host); err == nil {
		return netip.AddrPortFrom(addr, 80).String()
	}
	return ""
}

func networkFailure(class probe.Class, message string) probe.Result {
	return probe.Result{
		Verdict: probe.Down, Kind: probe.KindMCP,
		Failure:    &probe.Failure{Step: "initialize", Class: class, Message: message},
		Steps:      []probe.Step{{Name: "initialize", Class: class, Message: message}},
		Transcript: []probe.Message{{Step: "initialize", Sent: true, Head: "POST /"}},
	}
}

func (l *location) tellings() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.told...)
}

// verdicts counts the checks of an endpoint by what they say.
func (l *location) verdicts(ids ...string) map[string]int {
	counts := map[string]int{}
	for _, id := range ids {
		for _, c := range l.of(id) {
			what := string(c.Result.Verdict)
			if c.Result.Failure != nil {
				what += " " + string(c.Result.Failure.Class)
			}
			counts[what]++
		}
	}
	return counts
}

func (l *location) crowd(t *testing.T, n int) (ids []string) {
	t.Helper()
	for i := range n {
		id := fmt.Sprintf("e%d", i)
		l.know(t, endpoint(id))
		ids = append(ids, id)
	}
	return ids
}

func TestALocationWithoutANetworkSaysSoOnceAndBlamesNobody(t *testing.T) {
	for name, n := range map[string]int{"many endpoints": 600, "a few": 3, "one": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := locate(t)
				ids := l.crowd(t, n)
				time.Sleep(5 * time.Minute)
				if got := l.dials.Load(); got != 0 {
					t.Errorf("%d references were dialled while all was well", got)
				}
				l.cut.Store(true)
				time.Sleep(10 * time.Minute)
				if got := gathered(t, l.registry, "rollcall_location_offline"); got != 1 {
					t.Errorf("rollcall_location_offline is %v without a network", got)
				}
				l.cut.Store(false)
				time.Sleep(10 * time.Minute)
				if got := gathered(t, l.registry, "rollcall_location_offline"); got != 0 {
					t.Errorf("rollcall_location_offline is %v with a network", got)
				}
				told := l.tellings()
				if len(told) != 2 || !strings.HasPrefix(told[0], "true") || !strings.HasPrefix(told[1], "false") {
					t.Errorf("told %v, want one word of going offline and one of coming back", told)
				} else if strings.TrimPrefix(told[0], "true") != strings.TrimPrefix(told[1], "false") {
					t.Errorf("told %v, want both to name the same moment", told)
				}
				if got := strings.Count(l.log.String(), "this location is"); got != 2 {
					t.Errorf("%d lines in the log:\n%s", got, l.log.String())
				}
				counts := l.verdicts(ids...)
				offline := counts["unknown location_offline"]
				if want := 10 * n; offline < want-n || offline > want+n {
					t.Errorf("%d checks of ten minutes without a network are unknown, want about %d", offline, want)
				}
				delete(counts, "unknown location_offline")
				if got := counts["up"]; len(counts) != 1 || got < 14*n || got > 16*n {
					t.Errorf("the other checks are %v, want fifteen of each endpoint and all of them up", counts)
				}
				for _, id := range ids {
					for i, c := range l.of(id) {
						if want := "this location is offline: none of its reference addresses answers"; c.Result.Failure != nil &&
							(c.Result.Failure.Message != want || len(c.Result.Steps) != 1 || c.Result.Steps[0].Class != probe.ClassDNS || c.Transcript != nil) {
							t.Fatalf("check %+v, want its steps kept and the message %q", c.Result, want)
						}
						if i > 0 && c.ScheduledAt.Sub(l.of(id)[i-1].ScheduledAt) != time.Minute {
							t.Fatalf("%s: check %d is not a minute after the one before: what is nobody's fault needs no confirmation", id, i)
						}
					}
				}
			})
		})
	}
}

func TestAnOutageIsOneWhileAReferenceAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := locate(t)
		ids := l.crowd(t, 60)
		for _, id := range ids[:50] {
			l.broken.Store(endpoint(id).URL, true)
		}
		time.Sleep(10 * time.Minute)
		if counts := l.verdicts(ids[:50]...); len(counts) != 1 || counts["down connect"] < 500 {
			t.Errorf("checks of 50 broken endpoints are %v, want all of them down", counts)
		}
		if told := l.tellings(); told != nil {
			t.Errorf("told %v while a reference answers", told)
		}
		if got := l.dials.Load(); got > 2*600/3 {
			t.Errorf("%d dials in ten minutes, want an answer to be good for three seconds", got)
		}
		for _, id := range ids[:50] {
			for _, c := range l.of(id) {
				if held := c.Result.Duration; held > time.Second {
					t.Fatalf("a check took %s", held)
				}
			}
		}
	})
}

func TestMostEndpointsHaveToFailBeforeItIsTheLocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := locate(t, "192.0.2.1:53") // which never answers
		ids := l.crowd(t, 600)
		for _, id := range ids[:150] {
			l.broken.Store(endpoint(id).URL, true)
		}
		time.Sleep(10 * time.Minute)
		if told := l.tellings(); told != nil {
			t.Errorf("told %v though three of four endpoints are up", told)
		}
		counts := l.verdicts(ids[:150]...)
		if len(counts) != 1 || counts["down connect"] < 1000 {
			t.Errorf("checks of 150 broken endpoints are %v, want all of them down", counts)
		}
	})
}

func TestACheckThatIsHeldTakesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := locate(t, "192.0.2.1:53")
		for i := range 5 {
			e := at(fmt.Sprintf("down-%d", i), fmt.Sprintf("https://one.example/%d", i))
			l.broken.Store(e.URL, true)
			l.set(t, e)
		}
		time.Sleep(time.Second)
		e := at("good", "https://one.example/good")
		l.set(t, e)
		time.Sleep(100 * time.Millisecond)
		if got := len(l.of("good")); got != 1 {
			t.Errorf("%d checks of an endpoint whose neighbours are held, want 1", got)
		}
		if got := len(l.of("down-1")); got != 0 {
			t.Errorf("%d checks before it is decided", got)
		}
		time.Sleep(6 * time.Second)
		if got := len(l.of("down-1")); got == 0 {
			t.Error("no check after it is decided")
		}
	})
}

func TestWhatIsNearByProvesNothingAndIsJudgedAsEver(t *testing.T) {
	for name, tc := range map[string]struct {
		references []string
		url        string
		part       bool // whether it takes part
	}{
		"loopback":                          {nil, "http://127.0.0.1/mcp", false},
		"a private network":                 {nil, "http://10.1.2.3/mcp", false},
		"a carrier's network":               {nil, "http://100.64.1.2/mcp", false},
		"link-local":                        {nil, "http://169.254.1.2/mcp", false},
		"private, with a reference there":   {[]string{"10.0.0.1:53", "one.example:443"}, "http://10.1.2.3/mcp", true},
		"loopback, with a private one":      {[]string{"10.0.0.1:53"}, "http://127.0.0.1/mcp", false},
		"a public address":                  {nil, "http://198.51.100.9/mcp", true},
		"this machine, with one of its own": {[]string{"localhost:53"}, "http://127.0.0.1/mcp", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := locate(t, tc.references...)
				l.know(t, at("near", tc.url))
				l.know(t, endpoint("far"))
				time.Sleep(5 * time.Minute)
				l.cut.Store(true)
				l.broken.Store(tc.url, true)
				time.Sleep(5 * time.Minute)
				down, offline := l.verdicts("near")["down connect"], l.verdicts("near")["unknown location_offline"]
				if tc.part != (offline > 0) || tc.part == (down > 0) {
					t.Errorf("%d checks down and %d unknown of a broken endpoint without a network", down, offline)
				}
				l.broken.Delete(tc.url)
				time.Sleep(5 * time.Minute)
				if back := len(l.tellings()) > 1; back != tc.part {
					t.Errorf("told %v after it succeeded", l.tellings())
				}
			})
		})
	}
}

func TestOneEndpointThatCanBeReachedWhereOthersCannotIsNoNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := locate(t)
		l.crowd(t, 600)
		l.know(t, at("reachable", "http://198.51.100.9/mcp"))
		time.Sleep(time.Minute)
		l.cut.Store(true)
		time.Sleep(10 * time.Minute)
		if told := l.tellings(); len(told) != 1 {
			t.Errorf("told %v, want one word of going offline", told)
		}
		if counts := l.verdicts("reachable"); len(counts) != 1 || counts["up"] < 10 {
			t.Errorf("checks of the one that can be reached are %v, want them up", counts)
		}
	})
}

func TestAProbeThatBeganWithoutANetworkIsUnknownWhenItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := locate(t)
		l.know(t, endpoint("quick"))
		slow := endpoint("slow")
		slow.Schedule = "@daily"
		l.know(t, slow)
		l.cut.Store(true)
		time.Sleep(2 * time.Minute)
		l.late.Store(slow.URL, true)
		for _, want := range []string{"unknown location_offline", "down timeout"} {
			checked := make(chan error, 1)
			go func() {
				_, err := l.CheckNow(t.Context(), "slow")
				checked <- err
			}()
			time.Sleep(time.Second)
			l.cut.Store(false)
			if err := <-checked; err != nil {
				t.Fatal(err)
			}
			if got := l.verdicts("slow"); got[want] != 1 {
				t.Errorf("checks %v, want one %s", got, want)
			}
		}
	})
}

func TestOnlyWhatTheNetworkMayHaveDoneIsExcused(t *testing.T) {
	step := func(r probe.Result, change func(*probe.Step)) probe.Result {
		change(&r.Steps[0])
		return r
	}
	down := func(class probe.Class, message string) probe.Result { return networkFailure(class, message) }
	for name, tc := range map[string]struct {
		result  probe.Result
		excused bool
	}{
		"no address":                {down(probe.ClassDNS, "a.example has no address"), true},
		"no connection":             {down(probe.ClassConnect, "connection refused"), true},
		"a timeout before a byte":   {down(probe.ClassTimeout, "no first byte after 15s"), true},
		"a handshake that broke":    {down(probe.ClassTLS, "the server closed the connection during the handshake"), true},
		"a certificate that ended":  {down(probe.ClassTLS, "certificate expired"), false},
		"a timeout after a status":  {step(down(probe.ClassTimeout, ""), func(s *probe.Step) { s.HTTPStatus = 200 }), false},
		"a timeout after a byte":    {step(down(probe.ClassTimeout, ""), func(s *probe.Step) { s.Phases.FirstByte = 1 }), false},
		"an answer that is no HTTP": {step(down(probe.ClassConnect, ""), func(s *probe.Step) { s.Phases.FirstByte = 1 }), false},
		"a status":                  {down(probe.ClassHTTPStatus, ""), false},
		"an error of JSON-RPC":      {down(probe.ClassRPCError, ""), false},
		"no resolver": {probe.Result{
			Verdict: probe.Unknown, Failure: &probe.Failure{Step: "initialize", Class: probe.ClassProbeError, Message: "the resolver …"},
		}, true},
		"a target that cannot be probed": {probe.Result{
			Verdict: probe.Unknown, Failure: &probe.Failure{Class: probe.ClassProbeError},
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := locate(t)
				l.cut.Store(true)
				l.fixed.Store("https://a.example/mcp", tc.result)
				e := endpoint("a")
				e.Schedule = "@daily"
				l.know(t, e)
				check, err := l.CheckNow(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				if excused := check.Result.Failure.Class == "location_offline"; excused != tc.excused {
					t.Errorf("%s %+v: excused is %t, want %t", check.Result.Verdict, check.Result.Failure, excused, tc.excused)
				}
				if !tc.excused && cmp.Diff(tc.result.Failure, check.Result.Failure) != "" {
					t.Errorf("failure %+v, want it as it was: %+v", check.Result.Failure, tc.result.Failure)
				}
			})
		})
	}
}

// TestAHandshakeThatBreaksIsToldAsTheGuardExpects holds what package probe says against what the guard looks for.
func TestAHandshakeThatBreaksIsToldAsTheGuardExpects(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1024)) // what it says first is not answered
			_ = conn.Close()
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		prober := &probe.Prober{Egress: probe.Egress{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}
		s, stop := run(t, scheduler.Config{
			Concurrency: 1, Probe: prober.Probe, Record: silentRecord, References: []string{"localhost:1"},
			DialReference: func(context.Context, string, string) (net.Conn, error) { return nil, errNoRoute },
		})
		defer stop()
		e := at("a", "https://"+listener.Addr().String()+"/mcp")
		e.Schedule, e.Kind = "@daily", probe.KindMCP
		if err := s.Set(e, store.State{}); err != nil {
			t.Fatal(err)
		}
		check, err := s.CheckNow(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if check.Result.Failure == nil || check.Result.Failure.Class != "location_offline" {
			t.Errorf("%+v %+v, want the broken handshake taken for what a network does", check.Result.Failure, check.Result.Steps)
		}
	})
}

func TestAStopDoesNotWaitForADecisionForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		telling := make(chan struct{})
		s, stop := run(t, scheduler.Config{
			Concurrency: 10, Record: silentRecord, References: []string{"192.0.2.1:53"},
			Probe: func(context.Context, probe.Target) probe.Result { return networkFailure(probe.ClassDNS, "") },
			DialReference: func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, errNoRoute
			},
			Offline: func(ctx context.Context, offline bool, _ time.Time) {
				if offline {
					close(telling)
				}
				<-ctx.Done() // somebody who takes his time
			},
		})
		for _, id := range []string{"a", "b"} {
			if err := s.Set(endpoint(id), store.State{}); err != nil {
				t.Fatal(err)
			}
			s.Soon(id)
		}
		<-telling
		s.Soon("a")
		synctest.Wait()
		began := time.Now()
		stop()
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("stopped after %s", took)
		}
	})
}

func TestMoreChecksThanCanWaitForADecisionAreNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		var recorded atomic.Int64
		s, stop := run(t, scheduler.Config{
			Concurrency: 20_000, Registerer: registry, References: []string{"192.0.2.1:53"},
			Probe: func(context.Context, probe.Target) probe.Result { return networkFailure(probe.ClassDNS, "") },
			DialReference: func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, errNoRoute
			},
			Record: func(context.Context, store.Check) (store.Outcome, error) {
				recorded.Add(1)
				return store.Outcome{}, nil
			},
		})
		for i := range 10_050 {
			e := endpoint(fmt.Sprintf("e%d", i))
			e.Schedule = "@daily"
			if err := s.Set(e, store.State{}); err != nil {
				t.Fatal(err)
			}
			s.Soon(e.ID)
		}
		time.Sleep(7 * time.Second)
		if got := recorded.Load(); got != 10_000 {
			t.Errorf("%d checks recorded, want the 10,000 that may wait", got)
		}
		if got := gathered(t, registry, "rollcall_checks_discarded_total"); got != 50 {
			t.Errorf("%v checks discarded, want the 50 beyond", got)
		}
		stop()
	})
}

package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/sqlite"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// nameServer answers for TXT records on the loopback.
type nameServer struct {
	conn net.PacketConn

	mu      sync.Mutex
	records map[string][]string // guarded by mu, by name with a dot at its end
	broken  bool                // guarded by mu: it fails
}

func startNameServer(t *testing.T) *nameServer {
	t.Helper()
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nameServer{conn: conn, records: map[string][]string{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.serve()
	}()
	t.Cleanup(func() {
		conn.Close() //nolint:errcheck // that is how it ends
		<-done
	})
	return s
}

func (s *nameServer) serve() {
	packet := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFrom(packet)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(packet[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		if answer, err := s.answer(m).Pack(); err == nil {
			s.conn.WriteTo(answer, from) //nolint:errcheck // whoever asked asks again
		}
	}
}

func (s *nameServer) answer(m dnsmessage.Message) *dnsmessage.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := m.Questions[0]
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	texts, there := s.records[strings.ToLower(q.Name.String())]
	switch {
	case s.broken:
		m.RCode = dnsmessage.RCodeServerFailure
	case !there:
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeTXT:
		for _, text := range texts {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
				Body:   &dnsmessage.TXTResource{TXT: []string{text}},
			})
		}
	}
	return &m
}

func (s *nameServer) set(broken bool, records map[string][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken, s.records = broken, records
}

func (s *nameServer) lookup(ctx context.Context, name string) ([]string, error) {
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", s.conn.LocalAddr().String())
	}}
	return r.LookupTXT(ctx, name)
}

func TestADomainIsProvenByItsRecordAndLostWithIt(t *testing.T) {
	db, err := sqlite.Open(t.Context(), storetest.MigratedSQLite(t, sqlite.Migrate), storetest.Sealer(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() }) //nolint:errcheck // nothing was promised
	page, err := db.CreateStatusPage(t.Context(), store.StatusPage{Slug: "acme", Name: "ACME", Domain: "status.acme.example"})
	if err != nil {
		t.Fatal(err)
	}
	servers := startNameServer(t)
	d := domains{store: db, lookup: servers.lookup}
	name, text := page.DomainRecord()
	const slow = false
	for _, step := range []struct {
		what    string
		broken  bool
		records map[string][]string
		seen    time.Duration // how long ago the record was seen before; zero: never
		sure    bool          // that the record is not there
		proven  bool
	}{
		{"no record", slow, nil, 0, true, false},
		{"a record of somebody else", slow, map[string][]string{name + ".": {"rollcall=other", "v=spf1 -all"}}, 0, true, false},
		{"servers that fail", true, nil, 0, false, false},
		{"the record among others", slow, map[string][]string{name + ".": {"v=spf1 -all", text}}, 0, false, true},
		{"the record is gone for a while", slow, nil, store.DomainGrace - time.Hour, true, true},
		{"servers that fail for long", true, nil, 2 * store.DomainGrace, false, true},
		{"the record is gone for long", slow, nil, store.DomainGrace, true, false},
	} {
		servers.set(step.broken, step.records)
		if step.seen > 0 {
			_, err := db.UpdateStatusPage(t.Context(), "acme", func(p *store.StatusPage) error {
				at := time.Now().Add(-step.seen)
				p.DomainProvenAt = &at
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		err := d.prove(t.Context(), page)
		if _, sure := errors.AsType[noRecord](err); sure != step.sure {
			t.Errorf("%s: %v, want it to be sure: %v", step.what, err, step.sure)
		}
		if err := d.recheck(t.Context()); err != nil {
			t.Errorf("%s: %v", step.what, err)
		}
		now, err := db.StatusPage(t.Context(), "acme")
		if err != nil || (now.DomainProvenAt != nil) != step.proven {
			t.Errorf("%s: proven at %v, %v, want it to be proven: %v", step.what, now.DomainProvenAt, err, step.proven)
		}
	}
}

// paged is a database that has one page, with a domain that was never proven.
type paged struct {
	store.Store
	page store.StatusPage
}

func (p *paged) StatusPages(context.Context) ([]store.StatusPage, error) {
	return []store.StatusPage{p.page}, nil
}

func (p *paged) UpdateStatusPage(_ context.Context, _ string, change func(*store.StatusPage) error) (store.StatusPage, error) {
	return p.page, change(&p.page)
}

func TestDomainsAreLookedAtWhenTheServiceStartsAndThenEveryFewHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &paged{page: store.StatusPage{Slug: "acme", Domain: "status.acme.example", DomainToken: "token"}}
		begun := time.Now()
		var asked []time.Duration
		d := domains{store: db, lookup: func(context.Context, string) ([]string, error) {
			asked = append(asked, time.Since(begun))
			return []string{"rollcall=token"}, nil
		}}
		s := &service{log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithTimeout(t.Context(), 2*domainsEvery+time.Hour)
		defer cancel()
		if err := d.run(ctx, s.logged("look at domains", d.recheck)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(asked, []time.Duration{0, domainsEvery, 2 * domainsEvery}); diff != "" {
			t.Errorf("looked at after (-got +want):\n%s", diff)
		}
		if at := db.page.DomainProvenAt; at == nil || !at.Equal(store.Stamp(begun.Add(2*domainsEvery))) {
			t.Errorf("proven at %v, want the time of the last look", at)
		}
	})
}

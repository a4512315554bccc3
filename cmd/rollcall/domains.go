package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// How often the domains of status pages are looked at, and for how long one look may take.
const (
	domainsEvery   = 6 * time.Hour
	domainPatience = 10 * time.Second
)

// domains looks for the records that show whose the domains of status pages are.
type domains struct {
	store store.Store
	// lookup returns the TXT records of a name, as net.Resolver.LookupTXT does.
	lookup func(ctx context.Context, name string) ([]string, error)
}

// noRecord says what an answer had in place of the record: that it is not there is sure.
type noRecord string

func (n noRecord) Error() string { return string(n) }

// prove returns nil when the record of the domain of a page is there. Its error says in words what is there instead; it is
// a noRecord when that is sure, which no answer at all is not.
func (d domains) prove(ctx context.Context, p store.StatusPage) error {
	ctx, cancel := context.WithTimeout(ctx, domainPatience)
	defer cancel()
	name, want := p.DomainRecord()
	records, err := d.lookup(ctx, name+".") // the dot keeps search domains out of it
	if missing, ok := errors.AsType[*net.DNSError](err); ok && missing.IsNotFound {
		return noRecord("has no record: there is no TXT record at " + name)
	}
	if err != nil {
		return fmt.Errorf("could not be looked up: the name servers for %s do not answer", name)
	}
	if slices.ContainsFunc(records, func(r string) bool { return strings.TrimSpace(r) == want }) {
		return nil
	}
	return noRecord(fmt.Sprintf("has no record like that: the TXT records at %s say something else", name))
}

// run has every domain looked at, by look, at once and then once more each period, until ctx ends: what became of a domain while
// nothing ran shows at once.
func (d domains) run(ctx context.Context, look func(context.Context)) error {
	look(ctx)
	return every(ctx, domainsEvery, look)
}

// recheck looks at every domain once more. One whose record is gone for long is in use no longer; where no answer comes, nothing
// changes.
func (d domains) recheck(ctx context.Context) error {
	pages, err := d.store.StatusPages(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range pages {
		if p.Domain == "" {
			continue
		}
		missing := d.prove(ctx, p)
		if _, sure := errors.AsType[noRecord](missing); missing != nil && !sure {
			continue
		}
		errs = append(errs, d.note(ctx, p, missing == nil))
	}
	return errors.Join(errs...)
}

func (d domains) note(ctx context.Context, p store.StatusPage, there bool) error {
	ctx, cancel := context.WithTimeout(ctx, upkeepPatience)
	defer cancel()
	_, err := d.store.UpdateStatusPage(ctx, p.Slug, func(now *store.StatusPage) error {
		if now.Domain == p.Domain {
			now.NoteDomain(there, time.Now())
		}
		return nil
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil // it went while we were looking
	}
	return err
}

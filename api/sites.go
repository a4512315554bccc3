package api

import (
	"cmp"
	"context"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/net/idna"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

// site is the status page that a request is about, and where its parts are.
type site struct {
	page *store.StatusPage // without its logo; nil: the built-in page of all public endpoints
	base string            // scheme and host, which whole links begin with
	root string            // path that its own links begin with: "/status", "/p/acme", or empty at the root of its domain
	// named means that base is nobody's word: that of a request is its sender's.
	named bool
	shut  bool // it takes a password that was not given: nothing that it shows may be told
}

const keySite = "site"

// siteOf returns the status page that a request is about: the built-in one unless sited found another.
func (s *Server) siteOf(c echo.Context) site {
	if found, ok := c.Get(keySite).(site); ok {
		return found
	}
	return site{base: s.baseURL(c), root: "/status", named: s.cfg.PublicURL != ""}
}

// home is the path of the page itself.
func (v site) home() string { return cmp.Or(v.root, "/") }

// path is that of a part of the page, such as "/feed.atom".
func (v site) path(part string) string { return v.root + part }

// api is the path of what programs read, such as "/api/v2/summary.json".
func (v site) api(part string) string {
	if v.page == nil {
		return part
	}
	return v.root + part
}

// endpoint is the path of the history of an endpoint.
func (v site) endpoint(slug string) string {
	if v.page == nil {
		return v.root + "/" + slug
	}
	return v.root + "/service/" + slug
}

// incident is the whole address at which an incident is told of.
func (v site) incident(i store.Incident) string {
	if i.Slug != "" {
		return v.base + v.endpoint(i.Slug)
	}
	return v.base + v.home() + "#" + i.ID
}

func (v site) name() string {
	if v.page == nil {
		return "Rollcall"
	}
	return v.page.Name
}

// id names the page in answers shaped as Statuspage's.
func (v site) id() string {
	if v.page == nil {
		return pageID
	}
	return v.page.ID
}

// subscribed is the store.Subscription.PageID of those who subscribe on the page.
func (v site) subscribed() string {
	if v.page == nil {
		return ""
	}
	return v.page.ID
}

// keptAs names the page, as it was last edited, among what is kept of answers.
func (v site) keptAs() string {
	if v.page == nil {
		return pageID
	}
	return v.page.ID + " " + strconv.FormatInt(v.page.UpdatedAt.UnixMicro(), 36)
}

// canonical is the whole address that the page is known by, wherever it is looked at: that of its own domain where it has one, and
// empty where nobody but the request says what the address is.
func (v site) canonical(path string) string {
	if !v.named {
		return ""
	}
	if v.page == nil || v.page.DomainProvenAt == nil || v.root == "" {
		return v.base + path
	}
	scheme, _, _ := strings.Cut(v.base, "://")
	return scheme + "://" + v.page.Domain + cmp.Or(strings.TrimPrefix(path, v.root), "/")
}

// hidden reports whether search engines are to pass the page over.
func (v site) hidden() bool { return v.page != nil && (v.page.HideFromSearch || !v.page.Public()) }

// frame is what stands around the page's parts; nil around the built-in one.
func (v site) frame() *web.Site {
	switch {
	case v.page == nil:
		return nil
	case v.shut:
		return &web.Site{Home: v.home(), Locked: true}
	}
	f := &web.Site{Name: v.page.Name, Home: v.home(), Locked: !v.page.Public()}
	version := "?v=" + strconv.FormatInt(v.page.UpdatedAt.UnixMicro(), 36)
	if v.page.LogoType != "" {
		f.Logo = v.path("/logo") + version
	}
	if v.page.Accent != "" {
		f.Accent = v.path("/accent.css") + version
	}
	return f
}

// sites are all status pages, as they were a moment ago: every request asks whether its host is one of their domains.
type sites struct {
	mu      sync.Mutex
	readAt  time.Time // guarded by mu, as is all below
	known   *sitesRead
	reading bool
	changes int // how often they were to be read anew
}

// sitesRead is never changed once it is there.
type sitesRead struct {
	byID     map[string]*store.StatusPage
	bySlug   map[string]*store.StatusPage
	byDomain map[string]*store.StatusPage // those with a proven domain
}

// sitesFor is how long pages are believed to be as they were: a change through another instance is seen after that. sitesPatience
// bounds the reading, which others wait for.
const (
	sitesFor      = 5 * time.Second
	sitesPatience = 3 * time.Second
)

// forget has the pages read anew.
func (t *sites) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readAt, t.changes = time.Time{}, t.changes+1
}

// read returns the pages. Where the database is away, or another request is asking it, they are as they were last.
func (t *sites) read(ctx context.Context, from store.Store) (*sitesRead, error) {
	t.mu.Lock()
	known, changes := t.known, t.changes
	if known != nil && (t.reading || time.Since(t.readAt) < sitesFor) {
		t.mu.Unlock()
		return known, nil
	}
	t.reading = true
	t.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sitesPatience) // for others as well, who may stay
	defer cancel()
	pages, err := from.StatusPages(ctx)

	t.mu.Lock()
	defer t.mu.Unlock()
	t.reading = false
	if changes == t.changes {
		t.readAt = time.Now()
	}
	if err != nil {
		if known == nil {
			return nil, err
		}
		return known, nil
	}
	t.known = sitesOf(pages)
	return t.known, nil
}

func sitesOf(pages []store.StatusPage) *sitesRead {
	all := &sitesRead{map[string]*store.StatusPage{}, map[string]*store.StatusPage{}, map[string]*store.StatusPage{}}
	for _, p := range pages {
		all.byID[p.ID], all.bySlug[p.Slug] = &p, &p
		if p.Domain != "" && p.DomainProvenAt != nil {
			all.byDomain[p.Domain] = &p
		}
	}
	return all
}

// asciiHost returns the name of a host as DNS has it: in lower case, without a port and a dot at its end, and in ASCII. Empty when
// it is none.
func asciiHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	name, err := idna.Lookup.ToASCII(strings.TrimSuffix(host, "."))
	if err != nil {
		return ""
	}
	return strings.ToLower(name)
}

// ourHost is the host by which the dashboard is reached; empty where that is not known.
func (s *Server) ourHost() string {
	u, err := url.Parse(s.cfg.PublicURL)
	if err != nil {
		return ""
	}
	return asciiHost(u.Host)
}

const keyDomain = "domain"

// hosted leads what is asked of the domain of a status page to that page, and to nothing else: it runs before the router.
func (s *Server) hosted(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		host := asciiHost(r.Host)
		ours := s.ourHost() // without one, any host may be that of the dashboard
		if ours == "" || host == ours || !strings.Contains(host, ".") || net.ParseIP(host) != nil {
			return next(c)
		}
		all, err := s.sites.read(r.Context(), s.cfg.Store)
		if err != nil { // without a database there is nobody to be let in either
			return next(c)
		}
		page := all.byDomain[host]
		if page == nil {
			return next(c)
		}
		c.Set(keyDomain, page.Domain)
		if strings.HasPrefix(r.URL.Path, "/static/") || r.URL.Path == faviconPath {
			return next(c)
		}
		u := *r.URL
		u.Path = "/p/" + page.Slug + strings.TrimSuffix(u.Path, "/")
		if u.RawPath != "" {
			u.RawPath = "/p/" + page.Slug + strings.TrimSuffix(u.RawPath, "/")
		}
		r.URL = &u // in this very request: the router looks at no other
		return next(c)
	}
}

// sited finds the status page that a path names, and lets in whom it is for. Who may not see it learns no more than that it takes a
// password, and from addresses that programs read not even that.
func (s *Server) sited(next echo.HandlerFunc) echo.HandlerFunc {
	return s.siteFound(func(c echo.Context) error {
		if v := s.siteOf(c); v.shut {
			return s.keptOut(c, v)
		}
		return next(c)
	})
}

// siteFound finds the status page that a path names. Whom next answers may not have given its password: see site.shut.
func (s *Server) siteFound(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		all, err := s.sites.read(c.Request().Context(), s.cfg.Store)
		if err != nil {
			return err
		}
		page := all.bySlug[c.Param("slug")]
		if page == nil {
			return store.ErrNotFound
		}
		found := site{page: page, base: s.baseURL(c), root: "/p/" + page.Slug, named: s.cfg.PublicURL != ""}
		if domain, ok := c.Get(keyDomain).(string); ok {
			found.base, found.root, found.named = s.scheme(c)+"://"+domain, "", true
		}
		h := c.Response().Header()
		if found.hidden() {
			h.Set("X-Robots-Tag", "noindex, nofollow")
		}
		if !page.Public() {
			h.Set("Cache-Control", privateCache)
			h.Add("Vary", "Cookie")
			found.shut = !s.admitted(c, page)
		}
		c.Set(keySite, found)
		return next(c)
	}
}

// privateCache is for what takes a password: nobody keeps it.
const privateCache = "private, no-store"

// scheme is what people reach us by, as far as we may believe what we are told.
func (s *Server) scheme(c echo.Context) string {
	if s.https(c) {
		return "https"
	}
	return "http"
}

// sharedSite lets every site use what is of a page that takes no password.
func (s *Server) sharedSite(c echo.Context, v site, cacheControl string) {
	if v.page != nil && !v.page.Public() {
		return
	}
	shared(c, cacheControl)
}

// siteLinksCache is linksCache for a status page: the links of one at its own domain follow nobody's word.
func (s *Server) siteLinksCache(v site) string {
	if v.page != nil && v.root == "" {
		return publicCache
	}
	return s.linksCache()
}

// shownOn collects what is told on the status page that a request is about.
func (s *Server) shownOn(c echo.Context) (publicStatus, site, error) {
	v, ctx := s.siteOf(c), c.Request().Context()
	if v.page == nil {
		p, err := s.public(ctx)
		return p, v, err
	}
	p, err := keep(ctx, s.kept, s.asOf("page "+v.keptAs()), func(ctx context.Context) (publicStatus, error) { return s.publicOn(ctx, *v.page) })
	return p, v, err
}

// maxOnSite bounds how many endpoints one page shows: a tag may be that of any number.
const maxOnSite = 500

// publicOn collects what is told on a page.
func (s *Server) publicOn(ctx context.Context, page store.StatusPage) (publicStatus, error) {
	p := publicStatus{maintained: map[string]bool{}, now: time.Now()}
	var err error
	if p.sections, err = s.sectionsOf(ctx, page, maxOnSite); err != nil {
		return p, err
	}
	ids := []string{}
	for _, section := range p.sections {
		for _, o := range section.endpoints {
			p.endpoints, ids = append(p.endpoints, o), append(ids, o.ID)
		}
	}
	incidents, err := s.read.Incidents(ctx, store.IncidentFilter{
		EndpointIDs: ids, Kinds: publicKinds, Since: p.now.Add(-recentIncidents), Limit: maxIncidents,
	})
	if err != nil {
		return p, err
	}
	p.incidents = slices.DeleteFunc(incidents.Items, func(i store.Incident) bool { return !names(i, p.endpoints) })
	if err := s.addPlans(ctx, &p); err != nil {
		return p, err
	}
	p.plans = slices.DeleteFunc(p.plans, func(m store.Maintenance) bool { return !m.All && !covering(m, p.endpoints) })
	p.sum()
	return p, s.addUpdates(ctx, &p)
}

// names reports whether an incident is about one of some endpoints.
func names(i store.Incident, endpoints []store.Overview) bool {
	return slices.ContainsFunc(endpoints, func(o store.Overview) bool { return o.ID == i.EndpointID || slices.Contains(i.Endpoints, o.ID) })
}

// covering reports whether a maintenance covers one of some endpoints.
func covering(m store.Maintenance, endpoints []store.Overview) bool {
	return slices.ContainsFunc(endpoints, func(o store.Overview) bool { return m.Covers(o.Endpoint) })
}

// leaveToOthers takes from the built-in page maintenance of endpoints that are on other pages and not on this one: it is told there.
func (s *Server) leaveToOthers(ctx context.Context, p *publicStatus) error {
	planOfOthers := func(m store.Maintenance) bool { return !m.All && !covering(m, p.endpoints) }
	if !slices.ContainsFunc(p.plans, planOfOthers) {
		return nil
	}
	all, err := s.sites.read(ctx, s.cfg.Store)
	if err != nil {
		return err
	}
	var every store.StatusPage
	for _, page := range all.bySlug {
		every.Sections = append(every.Sections, page.Sections...)
	}
	sections, err := s.sectionsOf(ctx, every, math.MaxInt)
	if err != nil {
		return err
	}
	var elsewhere []store.Overview
	for _, section := range sections {
		elsewhere = append(elsewhere, section.endpoints...)
	}
	p.plans = slices.DeleteFunc(p.plans, func(m store.Maintenance) bool { return planOfOthers(m) && covering(m, elsewhere) })
	return nil
}

// siteSection is a part of a page with the endpoints that are there.
type siteSection struct {
	title     string
	endpoints []store.Overview // those it names as it names them, then those of its tags by name
}

// sectionsOf reads the endpoints of a page, so many at most. One that several sections name is in the first of them.
func (s *Server) sectionsOf(ctx context.Context, page store.StatusPage, most int) ([]siteSection, error) {
	ids, tags := page.Choice()
	filters := []store.EndpointFilter{{IDs: ids, Limit: -1}}
	for _, tag := range tags {
		filters = append(filters, store.EndpointFilter{Tag: tag, Limit: store.MaxLimit})
	}
	known := map[string]bool{}
	var all []store.Overview
	for _, filter := range filters {
		found, err := s.read.Endpoints(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, o := range found.Items {
			if !known[o.ID] && len(all) < most {
				known[o.ID] = true
				all = append(all, o)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b store.Overview) int {
		return cmp.Or(cmp.Compare(store.Fold(a.Name), store.Fold(b.Name)), cmp.Compare(a.ID, b.ID))
	})
	sections := make([]siteSection, 0, len(page.Sections))
	for _, part := range page.Sections {
		section := siteSection{title: part.Title}
		all = slices.DeleteFunc(all, func(o store.Overview) bool {
			if part.Shows(o.Endpoint) {
				section.endpoints = append(section.endpoints, o)
				return true
			}
			return false
		})
		slices.SortStableFunc(section.endpoints, func(a, b store.Overview) int {
			return cmp.Compare(placeIn(part.Endpoints, a.ID), placeIn(part.Endpoints, b.ID))
		})
		sections = append(sections, section)
	}
	return sections, nil
}

// onSite returns an endpoint of the status page that a request is about; store.ErrNotFound when it is not on it.
func (s *Server) onSite(ctx context.Context, v site, slug string) (store.Overview, error) {
	o, err := s.read.Endpoint(ctx, slug)
	switch {
	case err != nil:
		return store.Overview{}, err
	case v.page == nil && !o.Public, v.page != nil && !v.page.Shows(o.Endpoint):
		return store.Overview{}, store.ErrNotFound
	}
	return o, nil
}

// siteLogo answers with the image of a page.
func (s *Server) siteLogo(c echo.Context) error {
	v := s.siteOf(c)
	page, err := s.cfg.Store.StatusPage(c.Request().Context(), v.page.Slug)
	if err != nil {
		return err
	}
	if len(page.Logo) == 0 || page.LogoType == "" {
		return store.ErrNotFound
	}
	s.sharedSite(c, v, "public, max-age=3600")
	return cached(c, page.LogoType, page.Logo)
}

// siteAccent answers with the colours of a page.
func (s *Server) siteAccent(c echo.Context) error {
	v := s.siteOf(c)
	accents, err := web.AccentsOf(v.page.Accent)
	if err != nil {
		return store.ErrNotFound
	}
	s.sharedSite(c, v, "public, max-age=3600")
	return cached(c, "text/css; charset=utf-8", []byte(accents.CSS()))
}

// siteFrame is what stands around the pages of the status page that a request is about; nil where that is the built-in one.
func (s *Server) siteFrame(c echo.Context) *web.Site {
	if v, ok := c.Get(keySite).(site); ok {
		return v.frame()
	}
	if c.Get(keyDomain) != nil {
		return &web.Site{Home: "/"} // nothing is there, or the password is missing
	}
	return nil
}

// siteHere is the address of the page that a request to a status page of its own asked for, as here has it; empty where there is no
// such page.
func (s *Server) siteHere(c echo.Context) string {
	r, slug := c.Request(), c.Param("slug")
	if !strings.HasPrefix(r.URL.Path, "/p/"+slug) || slug == "" {
		return ""
	}
	if c.Get(keyDomain) == nil {
		return here(r)
	}
	asked := r.Clone(r.Context())
	asked.URL.Path = cmp.Or(strings.TrimPrefix(r.URL.Path, "/p/"+slug), "/")
	return here(asked)
}

// incidents is what the feeds of a page are called.
func (v site) incidents() string {
	if v.page == nil {
		return "Incidents"
	}
	return v.page.Name + ": incidents"
}

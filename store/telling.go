package store

import (
	"crypto/sha256"
	"net/url"
	"slices"
	"time"
)

// Telling is word of an incident for those who have subscribed.
type Telling struct {
	Incident  Incident
	Endpoints []Endpoint // that it is about; none when it is about none
	Kind      NoticeKind // what those hear who have heard of the opening; empty: nothing is told
	// Told means that the severity is one that the endpoint tells: those who named no severities go by that.
	Told    bool
	Anew    bool // it is open again: also those who heard of the opening hear of it as of another one
	EntryID string
	At      time.Time
}

// Listener is a subscription, the page that it is of (nil where that is the built-in one), and whether it has heard, or will, of the
// opening of an incident.
type Listener struct {
	Subscription
	Page  *StatusPage
	Heard bool
}

// shown reports whether an endpoint is one that somebody from the public may know of: one on the page that they subscribed on.
func (l Listener) shown(e Endpoint) bool {
	if l.PageID == "" {
		return e.Public
	}
	return l.Page != nil && l.Page.Shows(e)
}

// Notices returns one notice for each of the subscriptions that is to hear. Who heard that it began hears the rest, of whatever
// severity, and what is over is told to nobody else.
func (t Telling) Notices(all []Listener) []Notice {
	if t.Kind == "" {
		return nil
	}
	var notices []Notice
	for _, l := range all {
		kind := t.hears(l)
		if kind == "" {
			continue
		}
		n := Notice{ID: NewID("ntc"), IncidentID: t.Incident.ID, ChannelID: l.ID, Kind: kind, CreatedAt: t.At, DueAt: t.At}
		if !kind.Ahead() {
			n.EntryID = t.EntryID
		}
		notices = append(notices, n)
	}
	return notices
}

// hears returns what a subscription hears, empty for nothing.
func (t Telling) hears(l Listener) NoticeKind {
	about, shown := t.about(l)
	switch {
	case l.ConfirmedAt == nil, !shown && (!l.Heard || !t.orphaned()):
		return ""
	case t.Incident.ResolvedAt != nil:
		if l.Heard {
			return t.Kind
		}
		return ""
	case !slices.ContainsFunc(about, l.about):
		return ""
	case l.Heard && !t.Anew && t.Kind == NoticeOpened:
		return ""
	case l.Heard && !t.Anew:
		return t.Kind
	case l.Heard:
		return NoticeOpened // who heard that it was over hears that it is not
	case l.Severities == nil && !t.Told, l.Severities != nil && !slices.Contains(l.Severities, t.Incident.Severity):
		return ""
	}
	return NoticeOpened
}

// orphaned reports whether the end is told of an announcement of endpoints of which none is left: who heard of it hears of its end.
func (t Telling) orphaned() bool {
	return t.Incident.Kind == IncidentManual && t.Incident.NamesEndpoints && len(t.Endpoints) == 0 && t.Kind == NoticeResolved
}

// about returns the endpoints that somebody may know the incident is about, the zero one when it is about none, and whether they
// may know of the incident at all.
func (t Telling) about(l Listener) ([]Endpoint, bool) {
	about := t.Endpoints
	switch t.Incident.Kind {
	case IncidentExpiring, IncidentObjective, IncidentLocation:
		if l.Public() {
			return nil, false // no status page shows these
		}
	}
	// What is announced of nothing stands on the built-in page.
	announced := l.PageID == "" && t.Incident.Kind == IncidentManual && !t.Incident.NamesEndpoints && len(about) == 0
	if l.Public() && !announced {
		about = slices.DeleteFunc(slices.Clone(about), func(e Endpoint) bool { return !l.shown(e) })
		return about, len(about) > 0
	}
	if len(about) == 0 {
		about = []Endpoint{{}}
	}
	return about, true
}

// TellingOf returns what is told by a turn, by its last entry.
func TellingOf(t Turn, about []Endpoint) Telling {
	w := Telling{Incident: t.Incident, Endpoints: about, Kind: t.Tells, Told: t.Told, Anew: t.Reopens, At: t.At}
	if n := len(t.Entries); n > 0 {
		w.EntryID = t.Entries[n-1].ID
	}
	return w
}

// Tells reports whether an incident of this severity is one that its endpoints tell of: those that are about none are told.
func (i Incident) Tells(about []Endpoint) bool {
	if i.Kind != IncidentEndpoint || len(about) == 0 {
		return true
	}
	return slices.ContainsFunc(about, func(e Endpoint) bool { return e.Alerting.Tells(i.Severity) })
}

// Address returns where a subscription is sent to: an email address, or a URL.
func (s Subscription) Address() string {
	if s.Channel.Type == ChannelEmail {
		return s.Channel.Value("to")
	}
	if url := s.Channel.Value("webhook_url"); url != "" {
		return url
	}
	return s.Channel.Value("channel")
}

// AddressHash returns the form in which databases compare the addresses of subscriptions: a hash, because a URL may be a secret.
// Case plays no part but behind the host of a URL, where another case is another address.
func AddressHash(address string) []byte {
	sum := sha256.Sum256([]byte(foldAddress(CleanText(address))))
	return sum[:]
}

// foldAddress returns an address in one spelling: RFC 3986 §6.2.2.1 for a URL. A fragment is not sent.
func foldAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return Fold(address)
	}
	u.Scheme, u.Host, u.Fragment, u.RawFragment = Fold(u.Scheme), Fold(u.Host), "", ""
	return u.String()
}

// Audience says who sees a channel: the team, or nobody but the subscription that it is of.
type Audience string

// The audiences of channels. They are stored as they are.
const (
	AudienceTeam   Audience = "team"
	AudiencePublic Audience = "public"
	AudienceMember Audience = "member"
)

// Audience returns that of the channel of a subscription.
func (s Subscription) Audience() Audience {
	if s.Public() {
		return AudiencePublic
	}
	return AudienceMember
}

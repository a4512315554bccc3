package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // logos may be
	_ "image/jpeg" // likewise
	_ "image/png"  // likewise
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rollcallhq/rollcall/probe"
)

// StatusPage is a status page beside the built-in one: a choice of endpoints in sections, under a name and an address of its
// own. Whoever may see it sees the name, the status and the history of every endpoint on it, whether or not that is public
// elsewhere.
type StatusPage struct {
	ID   string
	Slug string // its address is /p/ and this; it never changes
	Name string
	Text string // for people, above everything else; may be empty
	// Logo is an image of at most MaxLogo bytes of type LogoType, which Validate fills in; nil for none. Lists leave the bytes out.
	Logo     []byte
	LogoType string
	Accent   string // of links and buttons, as "#17604f"; empty for the usual one
	Sections []PageSection
	// Domain is where the page is at the root, in lower-case ASCII without a port; empty for nowhere. It is in use while
	// DomainProvenAt is not nil: since the TXT record DomainRecord was seen, last at that time, with DomainToken in it.
	Domain         string
	DomainToken    string
	DomainProvenAt *time.Time
	PasswordHash   string // PHC string of argon2id; empty for a page that everybody may see
	HideFromSearch bool
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

// PageSection is a part of a status page: endpoints by their ids, some of which may be gone, in the order in which they stand there,
// and behind them all that have one of the tags, by name.
type PageSection struct {
	Title     string   `json:"title"` // may be empty
	Endpoints []string `json:"endpoints"`
	Tags      []string `json:"tags"`
}

// Shows reports whether an endpoint stands in the section.
func (s PageSection) Shows(e Endpoint) bool {
	return slices.Contains(s.Endpoints, e.ID) ||
		slices.ContainsFunc(e.Tags, func(tag string) bool { return slices.Contains(s.Tags, tag) })
}

// Shows reports whether an endpoint is on the page.
func (p StatusPage) Shows(e Endpoint) bool {
	return slices.ContainsFunc(p.Sections, func(s PageSection) bool { return s.Shows(e) })
}

// Choice returns the ids and the tags that the sections name, each once, in order.
func (p StatusPage) Choice() (ids, tags []string) {
	for _, s := range p.Sections {
		ids, tags = append(ids, s.Endpoints...), append(tags, s.Tags...)
	}
	slices.Sort(ids)
	slices.Sort(tags)
	return slices.Compact(ids), slices.Compact(tags)
}

// URL returns the address of the page, without a slash at its end: the root of its domain, once that is proven to be its own, or
// else a path of publicURL, the address of the service; empty where that is empty.
func (p StatusPage) URL(publicURL string) string {
	scheme, _, known := strings.Cut(publicURL, "://")
	switch {
	case !known:
		return ""
	case p.Domain != "" && p.DomainProvenAt != nil:
		return scheme + "://" + p.Domain
	}
	return publicURL + "/p/" + p.Slug
}

// Public reports whether everybody may see the page.
func (p StatusPage) Public() bool { return p.PasswordHash == "" }

// DomainRecord returns the name and the text of the TXT record that shows whose the domain is.
func (p StatusPage) DomainRecord() (name, text string) {
	return "_rollcall." + p.Domain, "rollcall=" + p.DomainToken
}

// DomainGrace is how long after it was last seen the record of a proven domain may be gone.
const DomainGrace = 3 * 24 * time.Hour

// NoteDomain keeps what became of a look for the record of the domain.
func (p *StatusPage) NoteDomain(there bool, now time.Time) {
	switch {
	case p.Domain == "":
		p.DomainProvenAt = nil
	case there:
		now = Stamp(now)
		p.DomainProvenAt = &now
	case p.DomainProvenAt != nil && now.Sub(*p.DomainProvenAt) >= DomainGrace:
		p.DomainProvenAt = nil
	}
}

// Bounds of status pages.
const (
	MaxStatusPages  = 100
	MaxLogo         = 100 << 10 // bytes
	maxLogoSide     = 4096      // pixels
	MaxSections     = 20
	maxOnPage       = 300 // endpoints named by one page
	maxTagsOnPage   = 20
	maxDomain       = 253 // RFC 1035 §2.3.4, without the dot at the end
	domainTokenSize = 22  // characters of a secret: 128 bits and more
)

// reservedPages cannot be slugs of pages: the dashboard has them beside those of pages.
var reservedPages = []string{"new", "status"}

var (
	accentForm = regexp.MustCompile(`^#[0-9a-f]{6}$`)
	// RFC 1123 §2.1; the last label is not a number, or it would be an address.
	domainForm = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])$`)
)

// Validate returns everything that is wrong with p as an Invalid.
func (p StatusPage) Validate() error {
	problems := nameProblems("name", p.Name)
	add := func(field, format string, args ...any) { problems = append(problems, problem(field, format, args...)) }
	switch {
	case p.Slug == "":
		add("slug", "is required")
	case Slugify(p.Slug) != p.Slug:
		add("slug", "must be lower-case letters, digits and single hyphens, at most %d", maxSlug)
	case slices.Contains(reservedPages, p.Slug):
		add("slug", "is the name of something else: choose another")
	}
	if utf8.RuneCountInString(p.Text) > maxText {
		add("text", "is longer than %d characters", maxText)
	}
	if p.Accent != "" && !accentForm.MatchString(p.Accent) {
		add("accent", "must be a colour like #17604f")
	}
	if len(p.Logo) > 0 {
		if _, err := LogoType(p.Logo); err != nil {
			add("logo", "%s", err)
		}
	}
	if p.Domain != "" && (len(p.Domain) > maxDomain || !domainForm.MatchString(p.Domain)) {
		add("domain", "must be a name like status.example.com, without a scheme, a port or a path")
	}
	return invalid(append(problems, p.sectionProblems()...))
}

func (p StatusPage) sectionProblems() []probe.Problem {
	var problems []probe.Problem
	if len(p.Sections) > MaxSections {
		problems = append(problems, problem("sections", "are more than %d", MaxSections))
	}
	for i, s := range p.Sections[:min(len(p.Sections), MaxSections)] {
		field := fmt.Sprintf("sections[%d]", i)
		if s.Title != "" {
			problems = append(problems, nameProblems(field+".title", s.Title)...)
		}
		for _, wrong := range tagProblems(s.Tags) {
			wrong.Field = field + "." + wrong.Field
			problems = append(problems, wrong)
		}
		if len(s.Endpoints)+len(s.Tags) == 0 {
			problems = append(problems, problem(field+".endpoints", "are required, or tags"))
		}
	}
	if ids, tags := p.Choice(); len(ids) > maxOnPage || len(tags) > maxTagsOnPage {
		problems = append(problems, problem("sections", "name more than %d endpoints or %d tags all together", maxOnPage, maxTagsOnPage))
	}
	return problems
}

// LogoType returns the media type of an image by its own first bytes. Its error says, in words for people, why an image cannot be
// a logo: SVG cannot, because it may hold scripts.
func LogoType(logo []byte) (string, error) {
	if len(logo) > MaxLogo {
		return "", fmt.Errorf("is larger than %d KiB", MaxLogo>>10)
	}
	width, height, format := webpSize(logo)
	if format == "" {
		config, name, err := image.DecodeConfig(bytes.NewReader(logo))
		if err != nil {
			return "", errors.New("must be a PNG, JPEG, WebP or GIF image")
		}
		width, height, format = config.Width, config.Height, name
	}
	if width < 1 || height < 1 || width > maxLogoSide || height > maxLogoSide {
		return "", fmt.Errorf("must be at most %d pixels wide and high", maxLogoSide)
	}
	return "image/" + format, nil
}

// webpSize reads the header of a WebP image (RFC 9649 §2.4 to 2.7); no format when it is none.
func webpSize(data []byte) (width, height int, format string) {
	if len(data) < 30 || string(data[:4]) != "RIFF" || string(data[8:12]) != "WEBP" {
		return 0, 0, ""
	}
	body := data[20:]
	switch string(data[12:16]) {
	case "VP8X":
		return 1 + uint24(body[4:]), 1 + uint24(body[7:]), "webp"
	case "VP8L":
		if body[0] != 0x2f {
			return 0, 0, ""
		}
		bits := binary.LittleEndian.Uint32(body[1:])
		return 1 + int(bits&0x3fff), 1 + int(bits>>14&0x3fff), "webp"
	case "VP8 ":
		if !bytes.Equal(body[3:6], []byte{0x9d, 0x01, 0x2a}) {
			return 0, 0, ""
		}
		return int(binary.LittleEndian.Uint16(body[6:]) & 0x3fff), int(binary.LittleEndian.Uint16(body[8:]) & 0x3fff), "webp"
	}
	return 0, 0, ""
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// EnrollStatusPage returns a page with the id, the token and the times that a database is to keep it under, or an Invalid.
func EnrollStatusPage(p StatusPage, at time.Time) (StatusPage, error) {
	p.ID, p.CreatedAt, p.UpdatedAt = NewID("page"), Stamp(at), Stamp(at)
	secret, _ := NewSecret("")
	p.DomainToken, p.DomainProvenAt = secret[:domainTokenSize], nil
	p = p.tidy()
	return p, p.Validate()
}

// EditStatusPage lets change edit a copy of p, and holds on to what never changes. Another domain has to be proven anew, and that
// one was proven changes no UpdatedAt.
func EditStatusPage(p StatusPage, change func(*StatusPage) error, at time.Time) (StatusPage, error) {
	edited := p
	edited.Logo, edited.Sections = bytes.Clone(p.Logo), cloneSections(p.Sections)
	if err := change(&edited); err != nil {
		return StatusPage{}, err
	}
	edited.ID, edited.Slug, edited.DomainToken, edited.CreatedAt = p.ID, p.Slug, p.DomainToken, p.CreatedAt
	if edited.Domain != p.Domain {
		edited.DomainProvenAt = nil
	}
	edited = edited.tidy()
	if edited.UpdatedAt = p.UpdatedAt; !sameBut(edited, p) {
		edited.UpdatedAt = Stamp(at)
	}
	return edited, edited.Validate()
}

// sameBut reports whether two pages say the same, whenever their domain was seen to be theirs.
func sameBut(a, b StatusPage) bool {
	return a.Name == b.Name && a.Text == b.Text && bytes.Equal(a.Logo, b.Logo) && a.Accent == b.Accent && a.Domain == b.Domain &&
		a.PasswordHash == b.PasswordHash && a.HideFromSearch == b.HideFromSearch &&
		slices.EqualFunc(a.Sections, b.Sections, func(a, b PageSection) bool {
			return a.Title == b.Title && slices.Equal(a.Endpoints, b.Endpoints) && slices.Equal(a.Tags, b.Tags)
		})
}

func cloneSections(sections []PageSection) []PageSection {
	sections = slices.Clone(sections)
	for i, s := range sections {
		sections[i].Endpoints, sections[i].Tags = slices.Clone(s.Endpoints), slices.Clone(s.Tags)
	}
	return sections
}

// tidy returns p as every database gives it back.
func (p StatusPage) tidy() StatusPage {
	p.Slug, p.Name, p.Text = CleanText(p.Slug), CleanText(p.Name), CleanText(p.Text)
	p.Accent, p.Domain = strings.ToLower(CleanText(p.Accent)), strings.ToLower(CleanText(p.Domain))
	p.Sections = cloneSections(p.Sections)
	for i, s := range p.Sections {
		p.Sections[i] = PageSection{CleanText(s.Title), cleanTexts(s.Endpoints), cleanTexts(s.Tags)}
	}
	if len(p.Sections) == 0 {
		p.Sections = nil
	}
	p.LogoType = ""
	if len(p.Logo) == 0 {
		p.Logo = nil
	} else if kind, err := LogoType(p.Logo); err == nil {
		p.LogoType = kind
	}
	if p.DomainProvenAt != nil {
		at := Stamp(*p.DomainProvenAt)
		p.DomainProvenAt = &at
	}
	return p
}

// TooManyStatusPages returns a Conflict when there is no room for one more beside n.
func TooManyStatusPages(n int) error {
	if n < MaxStatusPages {
		return nil
	}
	return Conflict{Field: "slug", Message: fmt.Sprintf("is one too many: there are %d pages already", n)}
}

package web

import (
	"cmp"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// CodePage asks somebody whose password was right for the code of their second factor.
type CodePage struct {
	Frame
	Problem string // why the last code was refused, empty on the first
}

func (CodePage) template() string { return "code" }

// JoinPage lets whoever opened a link choose a name and a password, or another password.
type JoinPage struct {
	Frame
	Token    string // from the link
	Name     string // as typed; of a member whose password it sets, theirs
	Resets   bool   // it sets a password
	Usable   bool   // the link is good; otherwise Title and Trouble say why not
	Title    string
	Trouble  string
	Problems Problems
}

func (JoinPage) template() string { return "join" }

// MembersPage is who may log in, and who was invited to.
type MembersPage struct {
	Frame
	Members     []MemberRow
	Invitations []InvitationRow
	Roles       []store.Role
	Form        InvitationForm
	Link        *ShownLink // just made: it is shown this once
	Removing    *MemberRow // who is about to be removed, if somebody is sure
	Problems    Problems
}

func (MembersPage) template() string { return "members" }

// MemberRow is a member.
type MemberRow struct {
	ID, Name    string
	Role        store.Role
	Disabled    *time.Time
	HasFactor   bool
	HasPassword bool
	Provider    string // host of the provider of identities that knows them
	Since       time.Time
	Self        bool // who looks at the page
}

// InvitationRow is a link that waits to be opened.
type InvitationRow struct {
	ID, Name string
	Role     store.Role
	Resets   bool
	Author   string
	Until    time.Time
}

// InvitationForm is an invitation as it was typed.
type InvitationForm struct {
	Name string
	Role store.Role
}

// ShownLink is a link with its secret.
type ShownLink struct {
	URL, Name string
	Resets    bool
	Until     time.Time
}

// AccountPage is somebody's own account.
type AccountPage struct {
	Frame
	HasPassword bool
	Provider    string // host of the provider of identities that knows them
	Sessions    []SessionRow
	FactorSince *time.Time // nil: no code is asked for
	CodesLeft   int        // recovery codes
	Enrolment   *Enrolment // of a second factor that waits for its first code
	Codes       []string   // recovery codes just made: they are shown this once
	CanLink     string     // host of the provider of identities by which they could log in as well; empty for none
	LinkTo      string     // where they go on to link their identity there; empty before they have asked for it
	Wrong       string     // the part of the page that Problems are about: "password", "factor" or "identity"
	Problems    Problems
}

func (AccountPage) template() string { return "account" }

// In returns the problems of a part of the page.
func (p AccountPage) In(part string) Problems {
	if p.Wrong == part {
		return p.Problems
	}
	return nil
}

// SessionRow is a login.
type SessionRow struct {
	ID        string
	Browser   Said
	UserAgent string // as it names itself
	Address   string
	Since     time.Time
	Seen      time.Time
	Current   bool
}

// Enrolment is what an authenticator app needs.
type Enrolment struct {
	QR     QR
	Secret string // in groups of four
}

// QR is a QR code: dark squares of one unit on a light ground of Size units each way.
type QR struct {
	Size int
	Path string
}

// TokensPage is the keys to the REST API.
type TokensPage struct {
	Frame
	Tokens   []TokenRow
	Roles    []store.Role
	Scopes   []Tick
	Form     TokenForm
	Made     *ShownToken // just made: its secret is shown this once
	Problems Problems
}

func (TokensPage) template() string { return "tokens" }

// TokenRow is a token.
type TokenRow struct {
	ID, Name string
	Role     store.Role
	Scopes   []store.Scope // empty: all that the role may
	Since    time.Time
	Expires  *time.Time
	Expired  bool
	Used     *time.Time
	Revoked  *time.Time
}

// TokenForm is a token as it was typed.
type TokenForm struct {
	Name    string
	Role    store.Role
	Scopes  []store.Scope
	Expires string // a day
}

// ShownToken is a token with its secret.
type ShownToken struct{ Name, Secret string }

// AuditPage is the log of changes.
type AuditPage struct {
	Frame
	Rows         []AuditRow
	Author, Noun string   // what is filtered by
	Nouns        []string // to choose from
	First, Next  string
}

func (AuditPage) template() string { return "audit" }

// AuditRow is one change.
type AuditRow struct {
	At           time.Time
	Author, Kind string
	Address      string
	Noun, Verb   string
	Name, Target string
	Path         string // where to look at it; empty for nowhere
	Changes      []store.Change
}

// did says what verbs of the log say, as something that happened.
var did = map[string]string{
	"create": "created", "update": "edited", "delete": "deleted", "revoke": "revoked", "resend": "sent again", "clear": "cleared",
	"acknowledge": "acknowledged", "snooze": "snoozed", "comment": "commented on", "resolve": "resolved", "reopen": "opened again",
}

// Did says what was done: the verb itself where there is no better word.
func (r AuditRow) Did() string { return cmp.Or(did[r.Verb], r.Verb) }

// ByAdminToken reports whether it was done with the token of the service's own configuration, whose name says what it is.
func (r AuditRow) ByAdminToken() bool {
	return r.Kind == string(store.ActorToken) && r.Author == "the admin token"
}

// Moment returns the moment that a value in the log is; nil when it is none.
func (AuditRow) Moment(value string) *time.Time {
	at, err := time.Parse(time.RFC3339, strings.Trim(value, `"`))
	if err != nil {
		return nil
	}
	return new(at.UTC())
}

// Hides reports whether a change is one of a secret, of which the log says only "set", "changed" or "removed".
func (AuditRow) Hides(c store.Change) bool {
	return c.Before == "" && (c.After == "set" || c.After == "changed" || c.After == "removed")
}

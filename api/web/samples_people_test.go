package web_test

import (
	"time"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

func members() web.Page {
	return web.MembersPage{
		Frame: frame("/members"), Roles: store.Roles, Form: web.InvitationForm{Name: "dave", Role: store.RoleEditor},
		Members: []web.MemberRow{
			{ID: "usr_1", Name: "ada", Role: store.RoleAdmin, HasFactor: true, HasPassword: true, Since: before(900 * time.Hour), Self: true},
			{ID: "usr_2", Name: "bob <b>", Role: store.RoleEditor, Provider: "id.example", Since: before(90 * time.Hour)},
			{ID: "usr_3", Name: "carl", Role: store.RoleViewer, HasPassword: true, Since: before(9 * time.Hour), Disabled: new(before(time.Hour))},
		},
		Invitations: []web.InvitationRow{
			{ID: "inv_1", Name: "eve", Role: store.RoleViewer, Author: "ada", Until: now.Add(time.Hour)},
			{ID: "inv_2", Name: "carl", Role: store.RoleViewer, Author: "ada", Resets: true, Until: now.Add(time.Hour)},
		},
		Link:     &web.ShownLink{URL: "https://rollcall.example/join?token=x", Name: "eve", Until: now.Add(time.Hour)},
		Removing: &web.MemberRow{ID: "usr_2", Name: "bob <b>"},
		Problems: web.Problems{{Field: "role", Message: "must be viewer, editor or admin"}},
	}
}

func sessions() []web.SessionRow {
	return []web.SessionRow{
		{ID: "a", Browser: web.Say("%s on Linux", "Firefox"), UserAgent: "Mozilla/5.0", Address: "192.0.2.1", Since: before(time.Hour), Seen: before(time.Minute), Current: true},
		{ID: "b", Browser: web.Say("%s on an iPhone", web.Say("A browser")), UserAgent: "Mozilla/5.0", Address: "2001:db8::1", Since: before(50 * time.Hour), Seen: before(3 * time.Hour)},
	}
}

func account() web.Page {
	return web.AccountPage{
		Frame: frame("/account"), HasPassword: true, Provider: "id.example", Sessions: sessions(), Wrong: "password",
		Problems: web.Problems{{Field: "password_old", Message: "is not your password"}, {Field: "password", Message: "must have at least 12 characters"}},
	}
}

func accountEnrol() web.Page {
	return web.AccountPage{
		Frame: frame("/account"), HasPassword: true, Sessions: sessions(), Wrong: "factor",
		Enrolment: &web.Enrolment{QR: web.QR{Size: 10, Path: "M4 4h1v1h-1z"}, Secret: "ABCD EFGH"},
		Problems:  web.Problems{{Field: "code", Message: "is not right, or was used already: wait for the next one"}},
	}
}

func accountLinks() web.Page {
	return web.AccountPage{
		Frame: frame("/account"), HasPassword: true, CanLink: "id.example", Sessions: sessions(), Wrong: "identity",
		Problems: web.Problems{{Field: "identity_old", Message: "is not your password"}, {Field: "identity", Message: "is that of another member"}},
	}
}

func accountGoesOn() web.Page {
	return web.AccountPage{
		Frame: frame("/account"), HasPassword: true, CanLink: "id.example", LinkTo: "https://id.example/authorize?state=x", Sessions: sessions(),
	}
}

func tokensMade() web.Page {
	return web.TokensPage{
		Frame: frame("/tokens"), Roles: store.Roles, Form: web.TokenForm{Name: "x", Role: store.RoleEditor, Expires: "2027-01-31"},
		Scopes: []web.Tick{{Value: "endpoints", Label: "endpoints", On: true}, {Value: "checks", Label: "checks"}},
		Tokens: []web.TokenRow{
			{ID: "tok_1", Name: "ci", Role: store.RoleAdmin, Since: before(900 * time.Hour), Used: new(before(time.Minute))},
			{ID: "tok_2", Name: "reader", Role: store.RoleViewer, Scopes: []store.Scope{store.ScopeEndpoints, store.ScopeChecks}, Since: before(time.Hour), Expires: new(now.Add(time.Hour))},
			{ID: "tok_3", Name: "old", Role: store.RoleEditor, Since: before(90 * time.Hour), Expires: new(before(time.Hour)), Expired: true},
			{ID: "tok_4", Name: "older", Role: store.RoleEditor, Since: before(90 * time.Hour), Revoked: new(before(time.Hour))},
		},
		Made:     &web.ShownToken{Name: "reader", Secret: "rct_x"},
		Problems: web.Problems{{Field: "scopes[0]", Message: "is no scope: use some of endpoints, checks"}},
	}
}

func audit() web.Page {
	return web.AuditPage{
		Frame: frame("/audit"), Author: "ada", Noun: "endpoint", Nouns: []string{"endpoint", "token"}, First: "/audit", Next: "/audit?cursor=x",
		Rows: []web.AuditRow{
			{
				At: before(time.Minute), Author: "ada", Kind: "member", Address: "192.0.2.1", Noun: "endpoint", Verb: "update", Name: "Weather",
				Target: "weather", Path: "/endpoints/weather",
				Changes: []store.Change{{Field: "name", Before: "Wetter <i>", After: "Weather"}, {Field: "headers", After: "changed"}},
			},
			{At: before(time.Hour), Author: "command line", Kind: "command", Noun: "token", Verb: "create", Name: "ci", Target: "tok_1"},
		},
	}
}

func started() web.Page {
	return web.SettingsPage{
		Frame: frame("/settings"), Location: "fra", Since: before(time.Hour),
		Rows: []web.SettingRow{
			{Flag: "--database", Variable: "ROLLCALL_DATABASE", Usage: "`path` of a SQLite file, or a postgres:// URL", Hidden: true, Given: true, Origin: "environment"},
			{Flag: "--listen", Variable: "ROLLCALL_LISTEN", Usage: "`address` to serve the dashboard and the API on", Value: "127.0.0.1:8080", Origin: "default"},
			{Flag: "--smtp", Variable: "ROLLCALL_SMTP", Usage: "`URL`", Hidden: true, Origin: "default"},
			{Flag: "--public-url", Variable: "ROLLCALL_PUBLIC_URL", Usage: "`URL` under which people reach this service, for links and cookies", Value: "https://<b>", Given: true, Origin: "flag"},
		},
	}
}

package web_test

import (
	"strings"
	"testing"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

func TestAnEmptyListLeadsOn(t *testing.T) {
	for name, test := range map[string]struct {
		page func(web.Frame) web.Page
		way  string // an address or a sentence; viewers are not sent where they may not go
	}{
		"locations": {func(f web.Frame) web.Page { return web.LocationsPage{Frame: f} }, `href="/endpoints/new"`},
		"channels":  {func(f web.Frame) web.Page { return web.ChannelsPage{Frame: f} }, "Paste a webhook URL or an email address"},
		"deliveries": {
			func(f web.Frame) web.Page { return web.ChannelPage{Frame: f, Log: &web.DeliveryLog{}} }, "Send a test, or choose this channel",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, role := range store.Roles {
				got := render(t, test.page(web.Frame{User: "ada", Role: role, Now: now}))
				if leads := strings.Contains(got, test.way); leads != role.May(store.RoleEditor) {
					t.Errorf("%s: the page leads on by %q: %v", role, test.way, leads)
				}
			}
		})
	}
}

func TestALogWhoseFilterFindsNothingLeadsToAllOfIt(t *testing.T) {
	const way = `href="/audit">Show everything`
	for _, page := range []web.AuditPage{{Author: "nobody"}, {Noun: "token"}, {}} {
		page.Frame = frame("/audit")
		if got := strings.Contains(render(t, page), way); got != (page.Author != "" || page.Noun != "") {
			t.Errorf("filtered by %q and %q: a way to everything is offered: %v", page.Author, page.Noun, got)
		}
	}
}

//go:build screenshots

package main_test

import (
	"strings"

	"github.com/chromedp/chromedp"

	"github.com/rollcallhq/rollcall/alerts/alertstest"
)

// ticked takes the pictures of what is done to many endpoints at once, and of what is asked before something is deleted.
func (c camera) ticked() {
	c.t.Helper()
	c.open("/?sort=name")
	evaluate[bool](c.person, `([...document.querySelectorAll(".c-pick input")].slice(0, 6).forEach(box => box.click()), true)`)
	c.shoot("overview-ticked")
	c.press("Delete…")
	c.shoot("bulk")
	c.open("/endpoints/retired")
	c.press("Delete…")
	c.shoot("delete")
}

// kept takes the pictures of lists that are empty until somebody puts something into them.
func (c camera) kept() {
	c.t.Helper()
	c.open("/tokens")
	c.enters(entry{"Name", "continuous integration", ""})
	c.sends("Make a token")
	c.shoot("tokens-made")
	c.open("/subscriptions")
	c.enters(entry{"Address", "ada@example.com", ""}, entry{"From", "22:00", ""}, entry{"Until", "06:00", ""}, entry{"Time zone", "Europe/Berlin", ""})
	c.sends("Subscribe")
	c.shoot("subscriptions-made")
}

// subscribes takes the pictures of every page that a subscriber comes by, from the form to the end of the subscription.
func (c camera) subscribes(i *instance, mail *alertstest.SMTP) {
	c.t.Helper()
	c.open("/status/subscribe")
	c.fill("Address", "not an address")
	c.turnedDown("Subscribe")
	c.shoot("subscribe-mistakes")
	c.fill("Address", readerAddress)
	c.sends("Subscribe")
	c.shoot("subscribe-asked")
	confirm := find(c.t, `http://\S+/confirm\?token=\S+`, c.mailWith(mail, "/confirm?").Text)
	c.open(confirm)
	c.shoot("subscribe-confirm")
	c.sends("Yes, subscribe")
	c.shoot("subscribe-confirmed")
	c.press("Change or end the subscription")
	c.shoot("subscribe-manage")
	i.call("POST", "/api/v1/incidents", object{"title": "Search is slow", "severity": "degraded", "endpoints": []string{"search"}}, 201, nil)
	c.open(strings.Trim(c.mailWith(mail, "Search is slow").Header.Get("List-Unsubscribe"), "<>"))
	c.shoot("subscribe-unsubscribe")
	c.sends("Unsubscribe")
	c.shoot("subscribe-ended")
	c.do("open a link that was used", chromedp.Navigate(confirm))
	c.shoot("subscribe-dead")
}

// mailWith waits for a mail to the reader that says some words.
func (c camera) mailWith(mail *alertstest.SMTP, words string) (found alertstest.Mail) {
	c.t.Helper()
	awaitWithin(c.t, toldWithin, "a mail with "+words, func() bool {
		for _, m := range mail.Messages() {
			if len(m.To) == 1 && m.To[0] == readerAddress && strings.Contains(m.Text, words) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// looks takes the pictures of pages that are not the same to somebody who may only look.
func (c camera) looks(invitation string) {
	c.t.Helper()
	c.joins(invitation, "grace")
	for name, path := range map[string]string{
		"viewer-overview": "/", "viewer-channels": "/channels", "viewer-maintenance": "/maintenance", "viewer-pages": "/pages",
		"viewer-page": "/pages/acme", "viewer-refused": "/members", "viewer-endpoint": "/endpoints/weather",
	} {
		c.take(path, name)
	}
	c.follow("/maintenance", `main a[href*="/maintenance/m"]`, "viewer-planned")
	c.follow("/incidents", `main a[href*="/incidents/inc_"]`, "viewer-incident")
}

// isAskedForACode takes the pictures of a second factor being set up, and asked for.
func (c camera) isAskedForACode(invitation string) {
	c.t.Helper()
	c.joins(invitation, "linus")
	c.enrols()
	c.shoot("account-codes")
	c.open("/account")
	c.fromMenu("Log out")
	c.tries("Enter your code", entry{"Name", "linus", ""}, entry{"Password", firstPassword, ""})
	c.shoot("login-code")
	c.enters(entry{"Code", "000000", ""})
	c.turnedDown("Log in")
	c.shoot("login-code-wrong")
}

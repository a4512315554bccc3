package main_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/pquerna/otp/totp"
)

// TestPeopleJoinLogInAndLookAfterTheirAccounts follows somebody from an invitation to a login with a second factor, with every
// mistake on the way, in a browser and in one that runs no scripts.
func TestPeopleJoinLogInAndLookAfterTheirAccounts(t *testing.T) {
	t.Parallel()
	browser := startBrowser(t)
	i := setUp(t)
	for _, who := range []string{"grace", "plain"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			admin, p := newPerson(browser, t, i.url), newPerson(browser, t, i.url)
			if who == "plain" {
				admin.withoutScripts()
				p.withoutScripts()
			}
			admin.logIn()
			p.joins(admin.invites(who), who)
			recovery := p.enrols()
			p.changesPassword()
			p.chooses()
			p.logsInAgain(who, recovery)
			p.leaves()
			admin.leaves()
		})
	}
}

// Passwords of those who join: the second takes the place of the first.
const (
	firstPassword  = "a mule that sharpens pencils"
	secondPassword = "a newt that sharpens pencils"
)

// invites makes an invitation, and returns its link.
func (p *person) invites(name string) string {
	p.t.Helper()
	return p.invitesAs(name, "editor")
}

func (p *person) invitesAs(name, role string) string {
	p.t.Helper()
	p.open("/members")
	p.enters(entry{"Name", name, ""}, entry{"Role", role, ""})
	p.press("Make a link")
	link, _ := p.typed("Link")
	return link
}

// joins opens the link, chooses a name that is taken and a password that is too short, and then better ones.
func (p *person) joins(link, name string) {
	p.t.Helper()
	p.open(link)
	p.sees("Welcome to Rollcall")
	p.enters(entry{"Name", "ada", ""}, entry{"Password", "short", ""})
	p.turnedDown("Join")
	p.mistaken("Name", "ada", "taken")
	p.mistaken("Password", "", "at least 12 characters")
	p.enters(entry{"Name", "ada", ""}, entry{"Password", firstPassword, ""})
	p.turnedDown("Join")
	p.mistaken("Name", "ada", "taken")
	p.enters(entry{"Name", name, ""}, entry{"Password", firstPassword, ""})
	p.press("Join")
	p.open("/")
	p.sees(name)
}

// mistaken fails the test unless a field holds what is left of what was typed, and a mistake is named beside it.
func (p *person) mistaken(label, left, wrong string) {
	p.t.Helper()
	value, beside := p.typed(label)
	if value != left || !strings.Contains(beside, wrong) {
		p.t.Errorf("in %s stands %q and beside it %q, want %q and %q", label, value, beside, left, wrong)
	}
}

// enrols sets up a second factor, and returns a recovery code.
func (p *person) enrols() string {
	p.t.Helper()
	p.open("/account")
	p.enters(entry{"Second factor: Your password", "not mine at all", ""})
	p.turnedDown("Set up a second factor")
	p.mistaken("Second factor: Your password", "", "is not your password")
	p.enters(entry{"Second factor: Your password", firstPassword, ""})
	p.press("Set up a second factor")
	p.sees("Scan this with an authenticator app")
	secret := evaluate[string](p, `document.querySelector("code.secret").innerText.replace(/\s/g, "")`)
	code, err := totp.GenerateCode(secret, time.Now())
	if err != nil {
		p.t.Fatal(err)
	}
	p.enters(entry{"Code", "12", ""})
	p.turnedDown("Ask for codes from here on")
	p.mistaken("Code", "", "is not right, or was used already")
	p.enters(entry{"Code", code, ""})
	p.press("Ask for codes from here on")
	p.sees("Your recovery codes", "A code of your authenticator app is asked for")
	codes := evaluate[[]string](p, `[...document.querySelectorAll("ol.codes code")].map(c => c.innerText)`)
	if slices.Sort(codes); len(slices.Compact(codes)) != 10 {
		p.t.Fatalf("the recovery codes are %q", codes)
	}
	return codes[0]
}

func (p *person) changesPassword() {
	p.t.Helper()
	p.open("/account")
	p.enters(entry{"Password: Your password", "not mine at all", ""}, entry{"Password: New password", "short", ""})
	p.turnedDown("Change the password")
	p.problemsLead("/account")
	p.mistaken("Password: New password", "", "at least 12 characters")
	p.enters(entry{"Password: Your password", "not mine at all", ""}, entry{"Password: New password", secondPassword, ""})
	p.turnedDown("Change the password")
	p.mistaken("Password: Your password", "", "is not your password")
	p.enters(entry{"Password: Your password", firstPassword, ""}, entry{"Password: New password", secondPassword, ""})
	p.press("Change the password")
	p.sees("Your account")
}

// chooses has the pages dark, and in another language, and then as they were.
func (p *person) chooses() {
	p.t.Helper()
	root := func() string {
		return evaluate[string](p, `document.documentElement.lang + " " + document.documentElement.dataset.theme`)
	}
	for _, choice := range []struct{ button, root, heading string }{
		{"Dark", "en dark", "Your account"}, {"Deutsch", "de dark", "Ihr Konto"}, {"English", "en dark", "Your account"}, {"Light", "en light", "Your account"}, {"Auto", "en undefined", "Your account"},
	} {
		p.fromMenu(choice.button)
		if got := root(); got != choice.root {
			p.t.Errorf("after %s the page is %q, want %q", choice.button, got, choice.root)
		}
		p.sees(choice.heading)
	}
}

// fromMenu opens the menu and presses a button in it.
func (p *person) fromMenu(button string) {
	p.t.Helper()
	p.do("open the menu", p.hit(`//details[@id="menu"]/summary`))
	p.leads("press "+button, p.hit(chromedp.Search(fmt.Sprintf(`//details[@id="menu"]//button[normalize-space()=%q]`, button))))
}

// logsInAgain logs out, and in again with every mistake on the way.
func (p *person) logsInAgain(name, recovery string) {
	p.t.Helper()
	p.open("/account")
	p.fromMenu("Log out")
	p.open("/incidents") // which leads to the login
	p.tries("The name or the password is wrong.", entry{"Name", name, ""}, entry{"Password", firstPassword, ""})
	if value, _ := p.typed("Name"); value != name {
		p.t.Errorf("of the name %q is left", value)
	}
	p.tries("Enter your code", entry{"Password", secondPassword, ""})
	p.tries("This code is not right", entry{"Code", "000000", ""})
	p.tries("Nothing is down.", entry{"Code", recovery, ""})
	p.sees("Incidents")
}

// tries logs in until words are to be read, for whoever was wrong before may have to wait.
func (p *person) tries(words string, entries ...entry) {
	p.t.Helper()
	awaitWithin(p.t, personPatience, fmt.Sprintf("%q to be read", words), func() bool {
		p.enters(entries...)
		if p.answer("press Log in", p.hit(sender("Log in"))) >= 400 {
			p.refused++
		}
		return strings.Contains(p.page(), words)
	})
}

package main_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/probe/probetest"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// toldWithin is far longer than word of an outage takes when checks come every second.
const toldWithin = 20 * time.Second

// TestAnOutageIsToldAndFollowedInABrowser is what somebody does who tries Rollcall for the first time, with the real program, in a
// real browser, from an empty database on.
func TestAnOutageIsToldAndFollowedInABrowser(t *testing.T) {
	t.Parallel()
	browser := startBrowser(t)
	for name, database := range map[string]func(*testing.T) []string{
		"SQLite":   func(*testing.T) []string { return nil },
		"Postgres": func(t *testing.T) []string { return []string{"--database", storetest.Postgres(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTryout(browser, t, database(t))
			s.setUp()
			s.addSlack()
			s.register()
			s.subscribe()
			opening := s.outage()
			s.acknowledge()
			s.recovery(opening)
			s.unsubscribe(opening)
			s.team.leaves()
			s.reader.leaves()
			s.plain.leaves()
		})
	}
}

// tryout is what the steps of the test hand on.
type tryout struct {
	t        *testing.T
	mcp      *probetest.Server
	slack    *alertstest.Slack
	mail     *alertstest.SMTP
	instance *instance
	team     *person // who runs the service
	reader   *person // of the status page
	plain    *person // another, whose browser runs no scripts
	incident string  // path of the first outage's page
	ts       string  // of the message about it in Slack
}

// Who reads the status page.
const (
	readerAddress = "reader@example.org"
	plainAddress  = "plain@example.org"
)

func newTryout(browser context.Context, t *testing.T, args []string) *tryout {
	s := &tryout{t: t, mcp: probetest.MCP(t), slack: alertstest.NewSlack(t), mail: alertstest.NewSMTP(t)}
	addr := freeAddress(t)
	s.instance = serveInstanceAt(t, addr, []string{testKey, "ROLLCALL_ADMIN_TOKEN="}, append(args,
		"--public-url", "http://"+addr, "--allow-private", "127.0.0.0/8,::1/128",
		"--smtp", s.mail.URL(), "--mail-from", "Rollcall <alerts@example.com>")...)
	s.team, s.reader, s.plain = newPerson(browser, t, s.instance.url), newPerson(browser, t, s.instance.url), newPerson(browser, t, s.instance.url)
	s.plain.withoutScripts()
	return s
}

// find returns the first group of a pattern in a text, or all of it.
func find(t testing.TB, pattern, text string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("there is no %s in:\n%s", pattern, text)
	}
	return found[len(found)-1]
}

// setUp follows the link that is printed at the first start.
func (s *tryout) setUp() {
	s.t.Helper()
	s.team.open(s.instance.setupLink())
	s.team.fill("Name", "ada")
	s.team.fill("Password", "a horse that staples batteries")
	s.team.press("Set up")
	s.team.open("/")
	s.team.sees("ada", "Nothing is watched yet")
}

func (s *tryout) addSlack() {
	s.t.Helper()
	s.team.open("/channels?type=slack")
	s.team.fill("Name", "ops")
	s.team.fill("Bot token", alertstest.Token)
	s.team.fill("Channel", alertstest.Channel)
	s.team.fill("Signing secret", alertstest.SigningSecret)
	s.team.fill("API URL", s.slack.APIURL())
	s.team.press("Add channel")
	s.team.press("Send a test")
	s.team.sees("The test message was accepted")
	if sent := s.slack.WaitFor(1, toldWithin); sent[0].Kind != alertstest.Post {
		s.t.Fatalf("the test of the channel came as %+v", sent[0])
	}
}

func (s *tryout) register() {
	s.t.Helper()
	s.team.open("/endpoints/new")
	s.team.fill("URL", s.mcp.URL)
	s.team.fill("Name", "Weather")
	s.team.fill("Schedule", "@every 1s")
	s.team.fill("Timeout", "1s")
	s.team.fill("Check again after", "1s")
	s.team.tick("ops")
	s.team.tick("Public")
	s.team.do("press Test", chromedp.Click(chromedp.Search(`//main//div[@class="save"]/button[normalize-space()="Test"]`)))
	awaitWithin(s.t, toldWithin, "the end of the conversation", func() bool { return strings.Contains(s.team.page(), "It answers as it should") })
	s.team.press("Save")
	s.team.finds("/endpoints/weather", "Weather", "Up")
	s.reader.finds("/status", "Weather", "Up")
}

// subscribe has both readers ask for mails and open the link in the question.
func (s *tryout) subscribe() {
	s.t.Helper()
	for n, reader := range []struct {
		*person
		address string
	}{{s.reader, readerAddress}, {s.plain, plainAddress}} {
		reader.open("/status")
		reader.unfold("Subscribe")
		reader.fill("Address", reader.address)
		reader.press("Subscribe")
		reader.sees("Look at your mail")
		s.mail.WaitFor(n+1, toldWithin)
		question := s.mailsTo(reader.address)
		if len(question) != 1 {
			s.t.Fatalf("%s has %d mails before the subscription is confirmed", reader.address, len(question))
		}
		reader.open(find(s.t, `http://\S+/status/confirm\?token=\S+`, question[0].Text))
		reader.sees("Do you want to be told of incidents?", reader.address)
		reader.press("Yes, subscribe")
		reader.sees("Subscribed")
	}
}

// outage stops the server. It returns the mail that tells a reader.
func (s *tryout) outage() alertstest.Mail {
	s.t.Helper()
	s.mcp.Stop()
	s.ts = s.posts(2)[1].TS
	shown, _ := s.slack.Shown(s.ts)
	for _, want := range []string{"🔴 Weather is down", "connect"} {
		if !strings.Contains(shown.Text, want) {
			s.t.Errorf("Slack does not say %q: %s", want, shown.Text)
		}
	}
	s.incident = find(s.t, regexp.QuoteMeta(s.instance.url)+`(/incidents/[^|>\s]+)`, shown.Text)
	opening := s.mailTo(readerAddress, 2)
	s.mailTo(plainAddress, 2)
	if !strings.Contains(opening.Text, "🔴 Weather is down") {
		s.t.Errorf("the mail does not say that Weather is down:\n%s", opening.Text)
	}
	s.public(opening)
	s.reader.open(find(s.t, `http://\S+/status/weather`, opening.Text))
	s.reader.sees("Weather", "Down")
	s.reader.finds("/status", "Going on", "Weather has been down for")
	return opening
}

// public fails the test when a mail says what the status page does not.
func (s *tryout) public(m alertstest.Mail) {
	s.t.Helper()
	all := regexp.MustCompile(`token=[\w.-]+`).ReplaceAllString(m.Subject+m.Text+m.HTML, "") // which may look like anything
	host := strings.TrimPrefix(strings.TrimSuffix(s.mcp.URL, "/mcp"), "http://")
	for _, secret := range []string{host, "/mcp", "connect", "refused", "Class", "initialize", "/incidents/", "default", "ops", "ada", "Slack"} {
		if strings.Contains(all, secret) {
			s.t.Errorf("a subscriber is told %q:\n%s", secret, all)
		}
	}
}

// acknowledge presses the button in Slack.
func (s *tryout) acknowledge() {
	s.t.Helper()
	actions := s.instance.url + "/slack/actions"
	if status := s.slack.Click(s.t, s.ts, "rollcall_acknowledge", actions, "not the secret of the app"); status != http.StatusUnauthorized {
		s.t.Errorf("a click that somebody forged is answered with %d", status)
	}
	if status := s.slack.Click(s.t, s.ts, "rollcall_acknowledge", actions, alertstest.SigningSecret); status != http.StatusOK {
		s.t.Fatalf("a click is answered with %d", status)
	}
	awaitWithin(s.t, toldWithin, "the message to say who has acknowledged", func() bool {
		shown, _ := s.slack.Shown(s.ts)
		return strings.Contains(shown.Blocks, "Acknowledged by ada (Slack)")
	})
	if shown, _ := s.slack.Shown(s.ts); strings.Contains(shown.Blocks, "rollcall_acknowledge") {
		s.t.Errorf("the message still has its buttons: %s", shown.Blocks)
	}
	if got := s.slack.Answers(); len(got) != 1 || !strings.Contains(got[0], "You have acknowledged it") {
		s.t.Errorf("whoever clicked was told %q", got)
	}
	s.team.finds(s.incident, "Acknowledged by ada (Slack)", "nobody is reminded", "Still going on")
}

// recovery starts the server again.
func (s *tryout) recovery(opening alertstest.Mail) {
	s.t.Helper()
	s.mcp.Start()
	s.recovered(s.ts)
	over := s.mailTo(readerAddress, 3)
	s.public(over)
	if !strings.Contains(over.Text, "🟢 Weather has recovered") || !regexp.MustCompile(`It lasted for \d+ seconds?\.`).MatchString(over.Text) {
		s.t.Errorf("the mail does not say that it is over and how long it lasted:\n%s", over.Text)
	}
	if first := opening.Header.Get("Message-Id"); first == "" || over.Header.Get("References") != first || over.Header.Get("In-Reply-To") != first {
		s.t.Errorf("the mail about the end answers %q (references %q), want %q", over.Header.Get("In-Reply-To"), over.Header.Get("References"), first)
	}
	s.reader.finds("/status", "Resolved", "Weather was down")
	s.team.finds(s.incident, "Over after", "Acknowledged by ada (Slack)", "The check that opened it")
	s.team.open("/channels")
	s.team.press("ops")
	s.team.sees("What was sent here", "Weather")
	s.posts(2)
}

// recovered waits until a message in Slack is green and its thread says how long the outage was.
func (s *tryout) recovered(ts string) {
	s.t.Helper()
	lasted := regexp.MustCompile(`Recovered after \d+ (seconds?|minutes? \d+ seconds?)\.`)
	awaitWithin(s.t, toldWithin, "the message to turn green and its thread to say how long", func() bool {
		shown, _ := s.slack.Shown(ts)
		thread := s.slack.Thread(ts)
		return strings.HasPrefix(shown.Text, "🟢 Weather has recovered") && len(thread) > 0 && lasted.MatchString(thread[len(thread)-1].Text)
	})
}

// unsubscribe does what the button of a mail program does. Of the next outage the other reader hears only.
func (s *tryout) unsubscribe(opening alertstest.Mail) {
	s.t.Helper()
	if got := opening.Header.Get("List-Unsubscribe-Post"); got != "List-Unsubscribe=One-Click" {
		s.t.Errorf("List-Unsubscribe-Post is %q", got)
	}
	link := strings.Trim(opening.Header.Get("List-Unsubscribe"), "<>")
	resp, err := http.PostForm(link, url.Values{"List-Unsubscribe": {"One-Click"}})
	if err != nil {
		s.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("one click unsubscribes with status %d", resp.StatusCode)
	}
	s.mcp.Stop()
	second := s.posts(3)[2]
	s.mailTo(plainAddress, 4)
	s.mcp.Start()
	s.recovered(second.TS)
	s.mailTo(plainAddress, 5)
	s.mailTo(readerAddress, 3)
	s.posts(3)
}

// posts waits for n messages in the channel, the test of it among them, and fails the test when there are more. Updates and words
// in threads do not count.
func (s *tryout) posts(n int) []alertstest.Message {
	s.t.Helper()
	var posts []alertstest.Message
	awaitWithin(s.t, toldWithin, fmt.Sprintf("%d messages in Slack", n), func() bool {
		posts = nil
		for _, m := range s.slack.Messages() {
			if m.Kind == alertstest.Post {
				posts = append(posts, m)
			}
		}
		return len(posts) >= n
	})
	if len(posts) > n {
		s.t.Fatalf("Slack has %d messages, want %d: %+v", len(posts), n, posts)
	}
	return posts
}

func (s *tryout) mailsTo(address string) []alertstest.Mail {
	var mails []alertstest.Mail
	for _, m := range s.mail.Messages() {
		if len(m.To) == 1 && m.To[0] == address {
			mails = append(mails, m)
		}
	}
	return mails
}

// mailTo waits for n mails to an address, the question of the subscription among them, and returns the last. It fails the test when
// there are more.
func (s *tryout) mailTo(address string, n int) alertstest.Mail {
	s.t.Helper()
	awaitWithin(s.t, toldWithin, fmt.Sprintf("%d mails to %s", n, address), func() bool { return len(s.mailsTo(address)) >= n })
	mails := s.mailsTo(address)
	if len(mails) > n {
		s.t.Fatalf("%s has %d mails, want %d: the last is\n%s", address, len(mails), n, mails[len(mails)-1].Text)
	}
	return mails[n-1]
}

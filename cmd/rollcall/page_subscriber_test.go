package main_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/probe/probetest"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// TestASubscriberOfAPageHearsOfWhatIsOnIt has somebody subscribe by mail on a status page of a customer's, which shows an endpoint that
// nobody else sees and that is added later, with the real program on either database.
func TestASubscriberOfAPageHearsOfWhatIsOnIt(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(*testing.T) []string{
		"SQLite":   func(*testing.T) []string { return nil },
		"Postgres": func(t *testing.T) []string { return []string{"--database", storetest.Postgres(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mcp, mail, addr := probetest.MCP(t), alertstest.NewSMTP(t), freeAddress(t)
			i := serveInstanceAt(t, addr, []string{testKey}, append(database(t),
				"--public-url", "http://"+addr, "--allow-private", "127.0.0.0/8,::1/128",
				"--smtp", mail.URL(), "--mail-from", "Rollcall <alerts@example.com>")...)
			submit := func(path string, fields url.Values) {
				t.Helper()
				resp, err := http.PostForm(i.url+path, fields)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close() //nolint:errcheck // nothing is read from it
				if resp.StatusCode != http.StatusOK {
					t.Fatalf("POST %s is answered with %d", path, resp.StatusCode)
				}
			}
			i.call("POST", "/api/v1/pages", object{"slug": "acme", "name": "ACME", "sections": []object{{"tags": []string{"acme"}}}}, 201, nil)
			for n, page := range []string{"/p/acme", "/status"} {
				submit(page+"/subscribe", url.Values{"type": {"email"}, "address": {readerAddress}, "all": {"yes"}})
				question := mail.WaitFor(n+1, toldWithin)[n]
				link := find(t, `http://\S+`+page+`/confirm\?token=\S+`, question.Text)
				submit(page+"/confirm", url.Values{"token": {find(t, `token=(\S+)`, link)}})
				if want := strings.HasSuffix(page, "acme"); strings.Contains(question.Subject, "ACME") != want {
					t.Errorf("the question of %s is %q", page, question.Subject)
				}
			}

			mcp.Stop()
			i.call("POST", "/api/v1/endpoints", object{
				"url": mcp.URL, "name": "Hush Hush", "schedule": "@every 1s", "timeout": "1s", "tags": []string{"acme"},
				"confirm": object{"failures": 2, "after": "1s"},
			}, 201, nil)
			opening := mail.WaitFor(3, toldWithin)[2]
			if !strings.Contains(opening.Text, "🔴 Hush Hush is down") || !strings.Contains(opening.Text, i.url+"/p/acme/service/hush-hush") ||
				strings.Contains(opening.Text, "/status") {
				t.Errorf("the mail does not lead from the outage to the page:\n%s", opening.Text)
			}
			end := strings.Trim(opening.Header.Get("List-Unsubscribe"), "<>")
			if !regexp.MustCompile(regexp.QuoteMeta(i.url) + `/p/acme/unsubscribe\?token=\S+$`).MatchString(end) {
				t.Errorf("List-Unsubscribe is %q", end)
			}
			mcp.Start()
			if over := mail.WaitFor(4, toldWithin)[3]; !strings.Contains(over.Text, "🟢 Hush Hush has recovered") {
				t.Errorf("the next mail is not about the end:\n%s", over.Text)
			}
			submit(strings.TrimPrefix(end, i.url), url.Values{"List-Unsubscribe": {"One-Click"}})
			var left struct{ Items []object }
			i.call("GET", "/api/v1/subscriptions", nil, 200, &left)
			if len(left.Items) != 1 || left.Items[0]["page"] != nil {
				t.Errorf("after the end there are %v, want that of the built-in page", left.Items)
			}
			i.call("DELETE", "/api/v1/pages/acme", nil, 204, nil)
			if n := len(mail.Messages()); n != 4 {
				t.Errorf("%d mails were sent, want two questions, the outage and its end", n)
			}
		})
	}
}

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/alerts/alertstest"
	"github.com/rollcallhq/rollcall/probe/probetest"
	"github.com/rollcallhq/rollcall/store/storetest"
)

// testKey is a secret key for instances on Postgres: 32 zero bytes.
const testKey = "ROLLCALL_SECRET_KEY=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

// watch registers a Slack webhook channel and an endpoint that alerts there, probed every second and confirmed at once.
func (i *instance) watch(slug, url string, slack *alertstest.Slack) {
	i.t.Helper()
	var channel struct{ ID string }
	i.call("POST", "/api/v1/channels", object{"name": "ops-" + slug, "type": "slack", "webhook_url": slack.WebhookURL()}, 201, &channel)
	i.call("POST", "/api/v1/endpoints", object{
		"name": slug, "slug": slug, "url": url, "schedule": "@every 1s", "timeout": "1s", "channels": []string{channel.ID},
		"confirm": object{"failures": 2, "successes": 1, "after": "500ms"},
	}, 201, nil)
	i.await(slug+" to be up", func() bool { return i.status(slug) == "up" })
}

func TestKilledInTheMiddleOfAnOutage(t *testing.T) {
	t.Parallel()
	postgres := storetest.Postgres(t)
	slack := alertstest.NewSlack(t)
	server := probetest.MCP(t)
	rollcall := serveInstance(t, []string{testKey}, "--database", postgres, "--allow-private", "127.0.0.0/8")
	rollcall.watch("weather", server.URL, slack)

	slack.SetFault(503, 0, "Slack has an outage of its own")
	server.Stop()
	rollcall.await("the outage to be seen", func() bool { return rollcall.status("weather") == "down" })
	rollcall.await("Slack to refuse the alert", func() bool {
		return rollcall.metric(`rollcall_deliveries_total{outcome="retried",type="slack"}`) >= 1
	})
	before := rollcall.incidents("weather")
	rollcall.kill()

	slack.SetFault(0, 0, "")
	rollcall.start()
	messages := slack.WaitFor(1, 3*time.Minute)
	if text := messages[0].Text; !strings.Contains(text, "weather") || !strings.Contains(text, "connect") {
		t.Errorf("the alert says %q; want the endpoint and the class", text)
	}
	during := rollcall.incidents("weather")
	if len(before) != 1 || len(during) != 1 || fmt.Sprint(before[0]["id"], before[0]["started_at"]) != fmt.Sprint(during[0]["id"], during[0]["started_at"]) {
		t.Errorf("incidents before the kill %v, after it %v; want the same one", before, during)
	}

	server.Start()
	rollcall.await("the recovery to be seen", func() bool { return rollcall.status("weather") == "up" })
	messages = slack.WaitFor(2, time.Minute)
	after := rollcall.incidents("weather")
	if len(after) != 1 || after[0]["status"] != "resolved" {
		t.Errorf("incidents after the recovery %v; want the one, resolved", after)
	}
	rollcall.stop()
	if got := len(slack.Messages()); got != 2 {
		t.Errorf("%d messages in all, want one alert and one resolution: %v", got, messages)
	}
}

func TestDatabaseThatGoesAwayWhileRunning(t *testing.T) {
	t.Parallel()
	postgres := storetest.PostgresServer(t)
	slack := alertstest.NewSlack(t)
	server := probetest.MCP(t)
	rollcall := serveInstance(t, []string{testKey}, "--database", postgres.URL(), "--allow-private", "127.0.0.0/8")
	rollcall.watch("weather", server.URL, slack)

	postgres.Stop(t)
	rollcall.await("checks to wait in memory", func() bool { return rollcall.metric("rollcall_recorder_waiting") >= 3 })
	if code := rollcall.get("/readyz"); code != 503 {
		t.Errorf("/readyz answers %d while the database is away, want 503", code)
	}
	if code := rollcall.get("/healthz"); code != 200 {
		t.Errorf("/healthz answers %d while the database is away, want 200: the process is alive", code)
	}
	server.Stop()
	probed := rollcall.metric(`rollcall_probes_total{class="connect",kind="mcp",verdict="down"}`)
	rollcall.await("probing to go on", func() bool {
		return rollcall.metric(`rollcall_probes_total{class="connect",kind="mcp",verdict="down"}`) >= probed+3
	})

	postgres.Start(t)
	rollcall.await("what waited to be written", func() bool { return rollcall.metric("rollcall_recorder_waiting") == 0 })
	slack.WaitFor(1, time.Minute)
	if dropped := rollcall.metric("rollcall_recorder_dropped_total"); dropped != 0 {
		t.Errorf("%v checks were lost", dropped)
	}
	incidents := rollcall.incidents("weather")
	if len(incidents) != 1 {
		t.Fatalf("incidents %v; want one", incidents)
	}
	rollcall.await("the service to be ready again", func() bool { return rollcall.get("/readyz") == 200 })
}

func TestOneServiceOnASQLiteFile(t *testing.T) {
	t.Parallel()
	path := storetest.SQLite(t)
	rollcall := serveInstance(t, nil, "--database", path)
	code, output := runBinary(t, nil, "serve", "--listen", "127.0.0.1:0", "--database", path)
	if code != 1 || !strings.Contains(output, "another `rollcall serve` runs on") {
		t.Errorf("a second service on the same file: exit code %d, output %q; want it refused", code, output)
	}
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if code, output := runBinary(t, []string{testKey}, "migrate", "--forget-secrets", "--database", link); code != 1 || !strings.Contains(output, "another `rollcall serve` runs on") {
		t.Errorf("the file of a service by another name: exit code %d, output %q; want it refused", code, output)
	}
	if code, output := runBinary(t, nil, "endpoints", "list", "--database", path); code != 0 {
		t.Errorf("`rollcall endpoints list` beside a service: exit code %d, output %q", code, output)
	}
	rollcall.kill()
	rollcall.start() // a killed service leaves no claim behind
}

func TestDatabaseThatIsDownAtTheStart(t *testing.T) {
	t.Parallel()
	code, output := runBinary(t, []string{testKey}, "serve", "--listen", "127.0.0.1:0", "--database", "postgres://rollcall:hunter2@127.0.0.1:9/rollcall")
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if !strings.Contains(output, "open Postgres") || strings.Contains(output, "hunter2") {
		t.Errorf("output %q; want what could not be opened, without the password", output)
	}
}

package main_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
)

// Admins see how the service was started, and of what is secret only that it was given.
func TestSettingsAreShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	i := setUp(t, "--smtp", "smtps://mailer:hunter2@mail.example:465", "--mail-from", "alerts@example.com",
		"--heartbeat-url", "https://beat.example/hunter2", "--per-host", "7")
	i.stop()
	i.env = append(i.env, "ROLLCALL_RETENTION=77h")
	i.start()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	answer, err := browser.PostForm(i.url+"/login", url.Values{"name": {"ada"}, "password": {showcasePassword}, "next": {"/settings"}})
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"--heartbeat-url", "given, and not shown", "--oidc-client-secret", "not given", "alerts@example.com", "<bdi>7</bdi>", "by its flag",
		"<bdi>77h</bdi>", "from the environment",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("%q is not on the page", want)
		}
	}
	for _, secret := range []string{"hunter2", "mail.example", "beat.example"} {
		if strings.Contains(string(page), secret) {
			t.Errorf("%q is on the page", secret)
		}
	}
	if t.Failed() {
		t.Logf("%s\n%s", answer.Request.URL, page)
	}
}

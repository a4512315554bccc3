package web_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/api/web"
)

func TestOnlyWhatHasEndedAndHasAPlaceIsSentAgain(t *testing.T) {
	var offered []string
	for n := range elements(t, render(t, channel())) {
		if n.Data == "input" && attr(n, "name") == "notice" {
			offered = append(offered, attr(n, "value"))
		}
	}
	if diff := cmp.Diff([]string{"ntc_3", "ntc_1", "ntc_0"}, offered); diff != "" {
		t.Errorf("notices that can be sent again (-want +got):\n%s", diff)
	}
}

func TestADeliveryLogThatNobodyKeepsIsNotShown(t *testing.T) {
	page := channel()
	for _, test := range []struct {
		log   *web.DeliveryLog
		shown bool
		words string
	}{
		{nil, false, ""},
		{&web.DeliveryLog{}, true, "Nothing yet."},
		{deliveries(), true, "To be tried again"},
	} {
		page.Log = test.log
		got := render(t, page)
		if strings.Contains(got, "What was sent here") != test.shown || !strings.Contains(got, test.words) {
			t.Errorf("log %+v: shown is not %v, or it does not say %q", test.log, test.shown, test.words)
		}
	}
}

func TestEveryMistakeInAChannelLeadsToItsFieldByTheNameOnTheForm(t *testing.T) {
	page := channels()
	got := render(t, page)
	for _, want := range []string{`<a href="#f-name">Name</a>`, `<a href="#f-channel">Channel</a>`} {
		if !strings.Contains(got, want) {
			t.Errorf("the summary has no %s", want)
		}
	}
	invalid := map[string]bool{}
	for n := range elements(t, got) {
		if attr(n, "aria-invalid") == "true" {
			invalid[attr(n, "id")] = true
		}
	}
	if diff := cmp.Diff(map[string]bool{"f-name": true, "f-channel": true}, invalid); diff != "" {
		t.Errorf("fields marked as wrong (-want +got):\n%s", diff)
	}
}

package web_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

// seenBy returns page as somebody with a role is shown it.
func seenBy(page web.Page, role store.Role) web.Page {
	v := reflect.New(reflect.TypeOf(page)).Elem()
	v.Set(reflect.ValueOf(page))
	v.FieldByName("Role").Set(reflect.ValueOf(role))
	return v.Interface().(web.Page)
}

func TestAViewerIsOfferedNothingThatIsRefused(t *testing.T) {
	for _, name := range []string{
		"incidents", "incident", "incident-open", "incident-manual", "incident-late", "maintenance", "plan-none",
		"status-pages", "channels", "channels-none", "channel", "channel-broken", "locations-none",
	} {
		for role, want := range map[store.Role]bool{store.RoleViewer: false, store.RoleEditor: true} {
			var offered []string
			for n := range elements(t, render(t, seenBy(samples()[name], role))) {
				shows := attr(n, "href") == "/status" || strings.HasPrefix(attr(n, "href"), "/p/")
				acts := n.Data == "button" || n.Data == "a" && strings.Contains(attr(n, "class"), "button") && !shows
				if acts && inside(n, "main") {
					offered = append(offered, n.Data+" "+attr(n, "value")+attr(n, "href"))
				}
			}
			if got := len(offered) > 0; got != want {
				t.Errorf("%s: somebody who is %s is offered %q", name, role, offered)
			}
		}
	}
}

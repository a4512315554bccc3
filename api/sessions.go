package api

import (
	"cmp"
	"strings"

	"github.com/rollcallhq/rollcall/api/web"
)

// browserWords says in a few words what a browser is, by the name it gives itself. Who lies about it fools only the list of their
// own sessions.
func browserWords(userAgent string) web.Said {
	var browser any = web.Say("A browser")
	if known := firstWord(userAgent, browsers); known != "" {
		browser = known
	}
	return web.Say(cmp.Or(firstWord(userAgent, systems), "%s"), browser)
}

type sign struct{ in, word string }

// browsers are told by these signs, in this order: most claim to be others as well.
var browsers = []sign{
	{"Edg", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"}, {"CriOS/", "Chrome"}, {"Chrome/", "Chrome"},
	{"Safari/", "Safari"}, {"curl/", "curl"},
}

// systems are where a browser runs.
var systems = []sign{
	{"Android", "%s on Android"}, {"iPhone", "%s on an iPhone"}, {"iPad", "%s on an iPad"}, {"Windows", "%s on Windows"},
	{"Mac OS X", "%s on macOS"}, {"CrOS", "%s on ChromeOS"}, {"Linux", "%s on Linux"},
}

func firstWord(userAgent string, signs []sign) string {
	for _, s := range signs {
		if strings.Contains(userAgent, s.in) {
			return s.word
		}
	}
	return ""
}

package api

import (
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
	return web.Say("%s"+firstWord(userAgent, systems), browser)
}

type sign struct{ in, word string }

// browsers are told by these signs, in this order: most claim to be others as well.
var browsers = []sign{
	{"Edg", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"}, {"CriOS/", "Chrome"}, {"Chrome/", "Chrome"},
	{"Safari/", "Safari"}, {"curl/", "curl"},
}

var systems = []sign{
	{"Android", " on Android"}, {"iPhone", " on an iPhone"}, {"iPad", " on an iPad"}, {"Windows", " on Windows"}, {"Mac OS X", " on macOS"},
	{"CrOS", " on ChromeOS"}, {"Linux", " on Linux"},
}

func firstWord(userAgent string, signs []sign) string {
	for _, s := range signs {
		if strings.Contains(userAgent, s.in) {
			return s.word
		}
	}
	return ""
}

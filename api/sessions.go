package api

import "strings"

// browserWords says in a few words what a browser is, by the name it gives itself. Who lies about it fools only the list of their
// own sessions.
func browserWords(userAgent string) string {
	return firstWord(userAgent, browsers, "A browser") + firstWord(userAgent, systems, "")
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

func firstWord(userAgent string, signs []sign, otherwise string) string {
	for _, s := range signs {
		if strings.Contains(userAgent, s.in) {
			return s.word
		}
	}
	return otherwise
}

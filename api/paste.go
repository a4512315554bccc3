package api

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

// slackHook is the path of an incoming webhook, at Slack and at servers of one's own that speak like it.
var slackHook = regexp.MustCompile(`^/services/T[0-9A-Z]+/B[0-9A-Z]+/[0-9A-Za-z]+$`)

// pasted returns the channel that a single thing somebody pasted stands for: an address that only one service hands out, a token
// whose form says whose it is, or the address of a mailbox. False when it could be anything. place is where a bot is to speak.
func pasted(text, place string) (store.ChannelType, map[string]string, bool) {
	if strings.HasPrefix(text, "xoxb-") {
		return store.ChannelSlack, map[string]string{"bot_token": text, "channel": place}, true
	}
	u, err := url.Parse(text)
	if err == nil && u.Host != "" && slackHook.MatchString(u.Path) {
		return store.ChannelSlack, map[string]string{"webhook_url": text}, true
	}
	if err != nil || u.Scheme != "https" {
		if _, err := store.Recipients(text); err == nil {
			return store.ChannelEmail, map[string]string{"to": text}, true
		}
		return "", nil, false
	}
	webhook := map[string]string{"webhook_url": text}
	switch host := strings.ToLower(u.Hostname()); {
	case host == "hooks.slack.com", host == "hooks.slack-gov.com":
		return store.ChannelSlack, webhook, true
	case (host == "discord.com" || host == "discordapp.com") && strings.HasPrefix(u.Path, "/api/webhooks/"):
		return store.ChannelDiscord, webhook, true
	case strings.HasSuffix(host, ".logic.azure.com"), strings.HasSuffix(host, ".api.powerplatform.com"):
		return store.ChannelTeams, webhook, true
	case host == "ntfy.sh" && len(u.Path) > 1:
		return store.ChannelNtfy, map[string]string{"topic": strings.Trim(u.Path, "/")}, true
	}
	return "", nil, false
}

// Words for what cannot be made a channel of.
const (
	pasteUnknown = "It is not known whose that is. Paste a webhook URL of Slack, Discord or Teams, a bot token of Slack, an ntfy.sh " +
		"topic or an email address; or choose a type below."
	pastePlace = "A bot has to know where to speak: write the channel beside the token, like #alerts."
)

// doPaste makes a channel of what was pasted and sends a test to it.
func (s *Server) doPaste(c echo.Context, f form) error {
	text, place := f.text("paste"), f.text("place")
	kind, fields, known := pasted(text, place)
	refuse := func(words string, problems web.Problems) error {
		spec, ok := kind.Spec()
		if !ok {
			spec = store.ChannelSpecs()[0]
		}
		return s.channelList(c, http.StatusUnprocessableEntity, web.ChannelsPage{
			Form: s.channelForm(spec, store.Channel{}), For: f.text("for"), Place: place, PasteProblem: words, PasteProblems: problems,
		})
	}
	if slug := f.text("for"); slug != "" {
		if _, err := s.cfg.Store.Endpoint(c.Request().Context(), slug); err != nil {
			return err
		}
	}
	switch {
	case !known:
		return refuse(pasteUnknown, nil)
	case fields["bot_token"] != "" && place == "":
		return refuse(pastePlace, nil)
	}
	name, err := s.freeChannelName(c.Request().Context(), kind)
	if err != nil {
		return err
	}
	in := channelInput{Name: &name, Type: new(string(kind)), Fields: map[string]*string{}}
	for field, value := range fields {
		in.Fields[field] = &value
	}
	channel, err := s.createChannel(c.Request().Context(), in)
	if err != nil {
		if p := problemOf(err); p.Status < http.StatusInternalServerError {
			return refuse("", problemsOf(p))
		}
		return err
	}
	outlast(c, maxProbe)
	if slug := f.text("for"); slug != "" {
		return s.doTell(c, slug, channel)
	}
	done := "tried"
	if err := s.cfg.TestChannel(c.Request().Context(), channel); err != nil {
		done = "untried" // its page says why, to whoever sends another
	}
	return seeOther(c, "/channels/"+channel.ID, done)
}

// doTell has an endpoint tell a channel that was just made, and sends a test there.
func (s *Server) doTell(c echo.Context, slug string, channel store.Channel) error {
	ctx := c.Request().Context()
	e, err := s.cfg.Store.UpdateEndpoint(ctx, slug, func(e *store.Endpoint) error {
		e.Channels = append(e.Channels, channel.ID)
		return nil
	})
	if err != nil {
		return err
	}
	s.cfg.Changed(ctx, e.ID, e.Slug)
	if err := s.cfg.TestChannel(ctx, channel); err != nil {
		return seeOther(c, "/channels/"+channel.ID, "untried")
	}
	return seeOther(c, "/endpoints/"+e.Slug, "told")
}

// freeChannelName returns what a channel of a type is called that nobody has named.
func (s *Server) freeChannelName(ctx context.Context, kind store.ChannelType) (string, error) {
	channels, err := s.cfg.Store.Channels(ctx)
	if err != nil {
		return "", err
	}
	taken := map[string]bool{}
	for _, c := range channels {
		taken[store.Fold(c.Name)] = true
	}
	for n := 1; ; n++ {
		if name := store.Numbered(typeWords(kind), n); !taken[store.Fold(name)] {
			return name, nil
		}
	}
}

package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

func (s *Server) pageChannels(c echo.Context) error {
	return s.channelList(c, http.StatusOK, web.ChannelsPage{})
}

func (s *Server) channelList(c echo.Context, status int, page web.ChannelsPage) error {
	channels, err := s.cfg.Store.Channels(c.Request().Context())
	if err != nil {
		return err
	}
	page.Frame = s.frame(c, "/channels")
	for _, channel := range channels {
		page.Channels = append(page.Channels, channelRow(channel))
	}
	return s.render(c, status, page)
}

func channelRow(c store.Channel) web.ChannelRow {
	return web.ChannelRow{ID: c.ID, Name: c.Name, Type: typeWords(c.Type), How: howWords(c), Broken: c.Broken, BrokenAt: c.BrokenAt}
}

// typeWords names a type of channel for people.
func typeWords(t store.ChannelType) string {
	if t == store.ChannelSlack {
		return "Slack"
	}
	return string(t)
}

// howWords says how a channel is reached, without its secrets.
func howWords(c store.Channel) string {
	if c.Secrets["bot_token"] != "" {
		return "bot in " + c.Settings["channel"]
	}
	return "incoming webhook"
}

// channelsOf returns the channels that hear of an endpoint.
func (s *Server) channelsOf(ctx context.Context, e store.Endpoint) ([]web.ChannelRow, error) {
	if len(e.Channels) == 0 {
		return nil, nil
	}
	channels, err := s.cfg.Store.Channels(ctx)
	if err != nil {
		return nil, err
	}
	var rows []web.ChannelRow
	for _, c := range channels {
		if slices.Contains(e.Channels, c.ID) {
			rows = append(rows, channelRow(c))
		}
	}
	return rows, nil
}

func (s *Server) doChannels(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	typed := readChannelForm(f)
	if _, err := s.createChannel(c.Request().Context(), channelInputOf(typed)); err != nil {
		p := problemOf(err)
		if p.Status >= http.StatusInternalServerError {
			return err
		}
		return s.channelList(c, p.Status, web.ChannelsPage{Form: typed, Problems: problemsOf(p)})
	}
	return seeOther(c, "/channels", "added")
}

// readChannelForm takes what was typed as it was typed.
func readChannelForm(f form) web.ChannelForm {
	return web.ChannelForm{
		Name:       f.text("name"),
		How:        f.text("how"),
		WebhookURL: f.text("webhook_url"),
		BotToken:   f.text("bot_token"),
		Channel:    f.text("channel"),
		APIURL:     f.text("api_url"),
	}
}

// channelInputOf reads what was typed. The fields of the way that was not chosen are emptied: a channel has one.
func channelInputOf(typed web.ChannelForm) channelInput {
	in := channelInput{
		Name:       &typed.Name,
		Type:       new(string(store.ChannelSlack)),
		WebhookURL: new(""),
		BotToken:   new(""),
		Channel:    new(""),
		APIURL:     new(""),
	}
	if typed.How == "bot" {
		in.BotToken, in.Channel, in.APIURL = &typed.BotToken, &typed.Channel, &typed.APIURL
		if typed.KeptToken && typed.BotToken == "" {
			in.BotToken = nil
		}
		return in
	}
	in.WebhookURL = &typed.WebhookURL
	if typed.KeptWebhook && typed.WebhookURL == "" {
		in.WebhookURL = nil
	}
	return in
}

func (s *Server) pageChannel(c echo.Context) error {
	channel, err := s.cfg.Store.Channel(c.Request().Context(), c.Param("id"))
	if err != nil {
		return err
	}
	return s.channelPage(c, http.StatusOK, channel, web.ChannelPage{Form: channelFormOf(channel)})
}

func (s *Server) channelPage(c echo.Context, status int, channel store.Channel, page web.ChannelPage) error {
	page.Frame, page.Channel = s.frame(c, "/channels"), channelRow(channel)
	return s.render(c, status, page)
}

// channelFormOf is a channel as the form shows it, without any secret.
func channelFormOf(c store.Channel) web.ChannelForm {
	f := web.ChannelForm{
		Name:        c.Name,
		How:         "webhook",
		Channel:     c.Settings["channel"],
		APIURL:      c.Settings["api_url"],
		KeptWebhook: c.Secrets["webhook_url"] != "",
		KeptToken:   c.Secrets["bot_token"] != "",
	}
	if f.KeptToken {
		f.How = "bot"
	}
	return f
}

// doChannel does what the buttons on a channel's page say.
func (s *Server) doChannel(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	channel, err := s.cfg.Store.Channel(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	switch f.text("action") {
	case "save":
		return s.saveChannel(c, channel, f)
	case "test":
		page := web.ChannelPage{Form: channelFormOf(channel), Tested: true}
		outlast(c, maxProbe)
		if err := s.cfg.TestChannel(c.Request().Context(), channel); err != nil {
			page.Failure = err.Error()
		}
		return s.channelPage(c, http.StatusOK, channel, page)
	case "delete":
		if f.ticked("confirmed") {
			if err := s.cfg.Store.DeleteChannel(ctx, channel.ID); err != nil {
				return err
			}
			return seeOther(c, "/channels", "deleted")
		}
		return s.render(c, http.StatusOK, web.ConfirmPage{
			Frame:    s.frame(c, "/channels"),
			Question: "Delete " + channel.Name + "?",
			Detail:   "Endpoints that tell it stop doing so, and what still waits to be sent is dropped. This cannot be undone.",
			Verb:     "Delete for good",
			Action:   "/channels/" + channel.ID,
			Back:     "/channels/" + channel.ID,
		})
	}
	return errNoAction
}

func (s *Server) saveChannel(c echo.Context, channel store.Channel, f form) error {
	typed := readChannelForm(f)
	kept := channelFormOf(channel)
	typed.KeptWebhook, typed.KeptToken = kept.KeptWebhook, kept.KeptToken
	if _, err := s.editChannel(c.Request().Context(), channel.ID, channelInputOf(typed)); err != nil {
		p := problemOf(err)
		if p.Status >= http.StatusInternalServerError || p.Status == http.StatusNotFound {
			return err
		}
		return s.channelPage(c, p.Status, channel, web.ChannelPage{Form: typed, Problems: problemsOf(p)})
	}
	return seeOther(c, "/channels/"+channel.ID, "saved")
}

package api

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Channel is a channel as it stands in JSON. Of its secrets it says only that they are there.
type Channel struct {
	ID            string            `json:"id"`
	Name          string            `json:"name"`
	Type          store.ChannelType `json:"type"`
	HasWebhookURL bool              `json:"has_webhook_url"`
	HasBotToken   bool              `json:"has_bot_token"`
	Channel       string            `json:"channel,omitempty"`
	APIURL        string            `json:"api_url,omitempty"`
	Broken        string            `json:"broken,omitempty"` // why nothing more is sent here
	BrokenAt      *Time             `json:"broken_at,omitempty"`
	CreatedAt     Time              `json:"created_at"`
	UpdatedAt     Time              `json:"updated_at"`
}

// ChannelJSON returns c as it stands in JSON.
func ChannelJSON(c store.Channel) Channel {
	return Channel{
		ID:            c.ID,
		Name:          c.Name,
		Type:          c.Type,
		HasWebhookURL: c.Secrets["webhook_url"] != "",
		HasBotToken:   c.Secrets["bot_token"] != "",
		Channel:       c.Settings["channel"],
		APIURL:        c.Settings["api_url"],
		Broken:        c.Broken,
		BrokenAt:      timeOf(c.BrokenAt),
		CreatedAt:     Time{c.CreatedAt},
		UpdatedAt:     Time{c.UpdatedAt},
	}
}

// channelInput is what somebody wants a channel to be, read from a JSON body or a form. A nil member stays as it is;
// an empty one is removed.
type channelInput struct {
	Name       *string
	Type       *string
	WebhookURL *string
	BotToken   *string
	Channel    *string
	APIURL     *string

	// Mistakes are those already met while reading.
	Mistakes []probe.Problem
}

// createChannel keeps a channel. Errors are store.Invalid with every mistake, store.Conflict, or the database's.
func (s *Server) createChannel(ctx context.Context, in channelInput) (store.Channel, error) {
	others, err := s.cfg.Store.Channels(ctx)
	if err != nil {
		return store.Channel{}, err
	}
	c, mistakes := in.onto(store.Channel{})
	if err := channelMistakes(c, mistakes, others); err != nil {
		return store.Channel{}, err
	}
	return s.cfg.Store.CreateChannel(ctx, c)
}

// editChannel changes what in names of a channel. Errors are those of createChannel, and store.ErrNotFound.
func (s *Server) editChannel(ctx context.Context, id string, in channelInput) (store.Channel, error) {
	others, err := s.cfg.Store.Channels(ctx) // before the transaction that changes the channel begins
	if err != nil {
		return store.Channel{}, err
	}
	return s.cfg.Store.UpdateChannel(ctx, id, func(c *store.Channel) error {
		changed, mistakes := in.onto(*c)
		if err := channelMistakes(changed, mistakes, others); err != nil {
			return err
		}
		*c = changed
		return nil
	})
}

// onto returns c with everything that in names, and every mistake met so far. The maps of c are left alone.
func (in channelInput) onto(c store.Channel) (store.Channel, []probe.Problem) {
	mistakes := slices.Clone(in.Mistakes)
	before := c.Settings["api_url"]
	set(&c.Name, in.Name)
	if in.Type != nil {
		c.Type = store.ChannelType(*in.Type)
	}
	c.Settings, c.Secrets = copied(c.Settings), copied(c.Secrets)
	put(c.Secrets, "webhook_url", in.WebhookURL)
	put(c.Secrets, "bot_token", in.BotToken)
	put(c.Settings, "channel", in.Channel)
	put(c.Settings, "api_url", in.APIURL)
	if c.Secrets["bot_token"] != "" && in.BotToken == nil && !sameAddress(before, c.Settings["api_url"]) {
		mistakes = append(mistakes, probe.Problem{Field: "bot_token", Message: requiredAgain})
	}
	return c, mistakes
}

func copied(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}

// put keeps a value that was given under its name; an empty one removes what was there.
func put(m map[string]string, name string, value *string) {
	switch {
	case value == nil:
	case strings.TrimSpace(*value) == "":
		delete(m, name)
	default:
		m[name] = strings.TrimSpace(*value)
	}
}

// channelMistakes returns those already met, everything that is wrong with c in itself and a name that one of the others
// has, nil when there are none.
func channelMistakes(c store.Channel, mistakes []probe.Problem, others []store.Channel) error {
	if err := c.Validate(); err != nil {
		for _, p := range problemOf(err).Errors {
			if !slices.ContainsFunc(mistakes, func(m probe.Problem) bool { return m.Field == p.Field }) {
				mistakes = append(mistakes, p)
			}
		}
	}
	var taken []probe.Problem
	if slices.ContainsFunc(others, func(o store.Channel) bool { return o.ID != c.ID && store.Fold(o.Name) == store.Fold(c.Name) }) {
		taken = append(taken, probe.Problem{Field: "name", Message: takenAlready})
	}
	return refusal(mistakes, taken)
}

func readChannel(m *members) channelInput {
	in := channelInput{
		Name:       m.text("name", ""),
		Type:       m.text("type", ""),
		WebhookURL: m.text("webhook_url", ""),
		BotToken:   m.text("bot_token", ""),
		Channel:    m.text("channel", ""),
		APIURL:     m.text("api_url", ""),
	}
	m.readOnly("id", "has_webhook_url", "has_bot_token", "broken", "broken_at", "created_at", "updated_at")
	m.rest()
	in.Mistakes = *m.mistakes
	return in
}

func (s *Server) listChannels(c echo.Context) error {
	if err := queryOf(c).end(); err != nil {
		return err
	}
	channels, err := s.cfg.Store.Channels(c.Request().Context())
	if err != nil {
		return err
	}
	return ok(c, listOf(channels, "", ChannelJSON))
}

func (s *Server) postChannel(c echo.Context) error {
	m, err := readBody(c)
	if err != nil {
		return err
	}
	channel, err := s.createChannel(c.Request().Context(), readChannel(m))
	if err != nil {
		return err
	}
	return answer(c, http.StatusCreated, "application/json", ChannelJSON(channel))
}

func (s *Server) patchChannel(c echo.Context) error {
	m, err := readBody(c)
	if err != nil {
		return err
	}
	channel, err := s.editChannel(c.Request().Context(), c.Param("id"), readChannel(m))
	if err != nil {
		return err
	}
	return ok(c, ChannelJSON(channel))
}

func (s *Server) deleteChannel(c echo.Context) error {
	if err := s.cfg.Store.DeleteChannel(c.Request().Context(), c.Param("id")); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// testChannel sends a test message. That it did not arrive is the answer of somebody behind us: 502.
func (s *Server) testChannel(c echo.Context) error {
	ctx := c.Request().Context()
	channel, err := s.cfg.Store.Channel(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	outlast(c, maxProbe)
	if err := s.cfg.TestChannel(c.Request().Context(), channel); err != nil {
		return fault(http.StatusBadGateway, "Test message not delivered", "%s", err)
	}
	return c.NoContent(http.StatusNoContent)
}

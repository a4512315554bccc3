package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/store"
)

// newSlackApp returns what answers clicks in Slack and the command /rollcall.
func (s *service) newSlackApp(client *http.Client) *alerts.SlackApp {
	return &alerts.SlackApp{
		Secrets: s.slackSecrets,
		Act:     s.slackAct,
		Status:  s.slackStatus,
		Origins: s.slackOrigins,
		Client:  client,
		Now:     time.Now,
		Log:     s.log,
	}
}

// slackSecrets returns the signing secrets of all Slack apps.
func (s *service) slackSecrets(ctx context.Context) ([]string, error) {
	channels, err := s.store.Channels(ctx)
	var secrets []string
	for _, c := range channels {
		if secret := c.Secrets["signing_secret"]; c.Type == store.ChannelSlack && secret != "" {
			secrets = append(secrets, secret)
		}
	}
	return secrets, err
}

// slackOrigins returns where servers that speak like Slack are, which answers may go to.
func (s *service) slackOrigins(ctx context.Context) ([]string, error) {
	channels, err := s.store.Channels(ctx)
	var origins []string
	for _, c := range channels {
		if u, err := url.Parse(c.Settings["api_url"]); c.Type == store.ChannelSlack && err == nil && u.Host != "" {
			origins = append(origins, u.Scheme+"://"+u.Host)
		}
	}
	return origins, err
}

// slackAct does what a button says. The same click may come twice.
func (s *service) slackAct(ctx context.Context, incidentID string, a alerts.SlackAct) (string, error) {
	i, err := s.store.Incident(ctx, incidentID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "There is no such incident any more.", nil
	case err != nil:
		return "", err
	case i.ResolvedAt != nil:
		return "That is over already.", nil
	}
	act := store.Act{Kind: store.ActKind(a.Kind), Author: a.Author, At: time.Now()}
	done := "You have acknowledged it: nobody is reminded."
	if act.Kind == store.ActSnooze {
		act.Until = act.At.Add(a.For)
		done = "Snoozed until " + act.Until.UTC().Format("15:04 MST") + "."
	} else if i.AcknowledgedAt != nil {
		return "It was acknowledged by " + i.AcknowledgedBy + " already.", nil
	}
	ctx = store.WithActor(ctx, store.Actor{Name: a.Author, Kind: store.ActorSlack})
	_, err = s.store.Act(ctx, incidentID, act)
	if clash, ok := errors.AsType[store.Conflict](err); ok {
		return "That " + clash.Message + ".", nil
	}
	if err != nil {
		return "", err
	}
	wake(s.noticed)(true)
	return done, nil
}

// maxStatusLines bounds an answer to /rollcall status.
const maxStatusLines = 20

// slackStatus says how one endpoint is, or what is wrong.
func (s *service) slackStatus(ctx context.Context, query string) (string, error) {
	if query == "" {
		return s.slackOverview(ctx)
	}
	o, err := s.store.Endpoint(ctx, query)
	if errors.Is(err, store.ErrNotFound) {
		page, err := s.store.Endpoints(ctx, store.EndpointFilter{Query: query, Limit: maxStatusLines})
		if err != nil {
			return "", err
		}
		if len(page.Items) == 0 {
			return fmt.Sprintf("No endpoint is called %q.", query), nil
		}
		return statusLines(page.Items), nil
	}
	if err != nil {
		return "", err
	}
	return statusLines([]store.Overview{o}), nil
}

// slackOverview says what is wrong at present.
func (s *service) slackOverview(ctx context.Context) (string, error) {
	var wrong []store.Overview
	for _, status := range store.Severities() {
		page, err := s.store.Endpoints(ctx, store.EndpointFilter{Status: status, Limit: maxStatusLines})
		if err != nil {
			return "", err
		}
		wrong = append(wrong, page.Items...)
	}
	if len(wrong) == 0 {
		return "🟢 Everything that is watched is up.", nil
	}
	return statusLines(wrong), nil
}

func statusLines(items []store.Overview) string {
	symbols := map[store.Status]string{
		store.StatusUp: "🟢", store.StatusDown: "🔴", store.StatusDegraded: "🟡", store.StatusGated: "🟠",
	}
	var lines []string
	for _, o := range items[:min(len(items), maxStatusLines)] {
		symbol, known := symbols[o.Status()]
		if !known {
			symbol = "⚪"
		}
		line := fmt.Sprintf("%s %s is %s", symbol, o.Name, o.Status())
		if !o.State.Since.IsZero() {
			line += " since " + o.State.Since.UTC().Format("2006-01-02 15:04 MST")
		}
		if f := o.State.Failure; f != nil {
			line += fmt.Sprintf(" (%s: %s)", f.Class, f.Message)
		}
		lines = append(lines, line)
	}
	if more := len(items) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", more))
	}
	return strings.Join(lines, "\n")
}

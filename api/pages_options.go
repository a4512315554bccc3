package api

import (
	"encoding/json"
	"strings"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// optionsForm fills in the settings of e that the form has fields for, without any secret.
func optionsForm(f *web.EndpointForm, e store.Endpoint) {
	o := e.Options
	f.ExpectPath, f.ExpectEquals, f.ExpectRegex, f.ExpectCEL = o.Expect.Path, string(o.Expect.Equals), o.Expect.Regex, o.Expect.CEL
	f.Chain, f.Subscribe = o.Chain.ID, o.Subscribe
	f.CA, f.Insecure = o.TLS.CA, o.TLS.Insecure
	if o.Canary != nil {
		f.CanaryTool, f.CanaryArguments = o.Canary.Tool, string(o.Canary.Arguments)
	}
	if a := o.OAuth; a != nil {
		f.OAuthID, f.OAuthTokenURL, f.KeptOAuthSecret = a.ClientID, a.TokenURL, a.ClientSecret != ""
	}
	f.ContractNotices = e.ContractNotices
	f.Command = commandText(e)
}

func commandText(e store.Endpoint) string {
	if e.Command == nil {
		return ""
	}
	return AddressOf(e)
}

// readOptionsForm takes what was typed into those fields.
func readOptionsForm(typed *web.EndpointForm, f form, kept store.Endpoint) {
	typed.ExpectPath, typed.ExpectEquals = f.text("expect_path"), f.text("expect_equals")
	typed.ExpectRegex, typed.ExpectCEL = f.text("expect_regex"), f.text("expect_cel")
	typed.Chain, typed.Subscribe = f.text("chain"), f.ticked("subscribe")
	typed.CanaryTool, typed.CanaryArguments = f.text("canary_tool"), f.text("canary_arguments")
	// A browser ends lines as HTTP does; PEM is kept as it was given.
	typed.CA, typed.Insecure = strings.ReplaceAll(f.text("tls_ca"), "\r\n", "\n"), f.ticked("tls_insecure")
	typed.OAuthID, typed.OAuthSecret, typed.OAuthTokenURL = f.text("oauth_id"), f.text("oauth_secret"), f.text("oauth_token_url")
	typed.ContractNotices = f.ticked("contract_notices")
	typed.KeptOAuthSecret = kept.Options.OAuth != nil && kept.Options.OAuth.ClientSecret != ""
	typed.Command = commandText(kept)
	if kept.Options.TLS.CA != "" && strings.TrimSpace(kept.Options.TLS.CA) == typed.CA {
		typed.CA = kept.Options.TLS.CA
	}
}

// optionsOf reads what was typed. What the form has no field for stays as it is.
func optionsOf(typed web.EndpointForm) (optionsInput, []probe.Problem) {
	var mistakes []probe.Problem
	data := func(field, text string) any {
		if text == "" {
			return nil
		}
		if !json.Valid([]byte(text)) {
			mistakes = append(mistakes, probe.Problem{Field: field, Message: "is not JSON: text stands in double quotes"})
			return nil
		}
		return json.RawMessage(text)
	}
	members := map[string]any{
		"request.expect": map[string]any{
			"path": orNull(typed.ExpectPath), "regex": orNull(typed.ExpectRegex), "cel": orNull(typed.ExpectCEL),
			"equals": data("request.expect.equals", typed.ExpectEquals),
		},
		"chain":     map[string]any{"id": orNull(typed.Chain)},
		"subscribe": orNull(typed.Subscribe),
		"tls":       map[string]any{"ca": orNull(typed.CA), "insecure": orNull(typed.Insecure)},
		"canary":    nil,
		"oauth":     nil,
	}
	if arguments := data("canary.arguments", typed.CanaryArguments); typed.CanaryTool != "" || typed.CanaryArguments != "" {
		members["canary"] = map[string]any{"tool": typed.CanaryTool, "arguments": arguments}
	}
	if typed.OAuthID != "" || typed.OAuthSecret != "" || typed.OAuthTokenURL != "" {
		oauth := map[string]any{"client_id": typed.OAuthID, "token_url": orNull(typed.OAuthTokenURL)}
		if typed.OAuthSecret != "" {
			oauth["client_secret"] = typed.OAuthSecret
		}
		members["oauth"] = oauth
	}
	in := optionsInput{}
	for name, v := range members {
		raw, err := encode(v)
		if err != nil {
			continue // not reached: it is text, flags and valid JSON
		}
		in[name] = raw
	}
	return in, mistakes
}

// orNull returns nil, which takes a member out, for the zero value.
func orNull[T comparable](v T) any {
	if v == *new(T) {
		return nil
	}
	return v
}

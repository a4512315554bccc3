package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

// Token is a key to the REST API as it stands in JSON. Secret is there once, in the answer to who made it.
type Token struct {
	ID         string        `json:"id"`
	Name       string        `json:"name"`
	Role       store.Role    `json:"role"`
	Scopes     []store.Scope `json:"scopes"`
	CreatedAt  Time          `json:"created_at"`
	ExpiresAt  *Time         `json:"expires_at"`
	LastUsedAt *Time         `json:"last_used_at"`
	RevokedAt  *Time         `json:"revoked_at"`
	Secret     string        `json:"secret,omitempty"`
}

func tokenJSON(t store.Token) Token {
	return Token{
		ID: t.ID, Name: t.Name, Role: t.Role, Scopes: append([]store.Scope{}, t.Scopes...), CreatedAt: Time{t.CreatedAt},
		ExpiresAt: timeOf(t.ExpiresAt), LastUsedAt: timeOf(t.LastUsedAt), RevokedAt: timeOf(t.RevokedAt),
	}
}

func (s *Server) listTokens(c echo.Context) error {
	if err := queryOf(c).end(); err != nil {
		return err
	}
	tokens, err := s.cfg.Store.Tokens(c.Request().Context())
	if err != nil {
		return err
	}
	items := make([]Token, 0, len(tokens))
	for _, t := range tokens {
		items = append(items, tokenJSON(t))
	}
	return ok(c, list[Token]{Items: items})
}

func (s *Server) postToken(c echo.Context) error {
	m, err := readBody(c)
	if err != nil {
		return err
	}
	t := store.Token{Role: store.RoleViewer}
	set(&t.Name, m.text("name", ""))
	if role := m.text("role", ""); role != nil {
		t.Role = store.Role(*role)
	}
	if scopes := m.texts("scopes"); scopes != nil {
		t.Scopes = scopesOf(*scopes)
	}
	if expires := m.time("expires_at"); expires != nil && !expires.IsZero() { // null: never
		t.ExpiresAt = expires
	}
	m.readOnly("id", "created_at", "last_used_at", "revoked_at", "secret")
	m.rest()
	if len(*m.mistakes) > 0 {
		return store.Invalid{Problems: *m.mistakes}
	}
	kept, secret, err := s.makeToken(c, t)
	if err != nil {
		return err
	}
	shown := tokenJSON(kept)
	shown.Secret = secret
	return answer(c, http.StatusCreated, "application/json", shown)
}

func scopesOf(words []string) []store.Scope {
	scopes := make([]store.Scope, 0, len(words))
	for _, w := range words {
		scopes = append(scopes, store.Scope(w))
	}
	return scopes
}

// makeToken keeps a token and returns its secret, which nobody sees again. A token makes none that may do more than itself: one
// bound to parts of the API binds what it makes to some of them.
func (s *Server) makeToken(c echo.Context, t store.Token) (store.Token, string, error) {
	if err := t.Validate(time.Now()); err != nil {
		return store.Token{}, "", err
	}
	if by, isToken := c.Get(keyToken).(bearing); isToken {
		for i, scope := range t.Scopes {
			if !by.Reaches(scope) {
				return store.Token{}, "", store.Invalid{Problems: []probe.Problem{{Field: indexed("scopes", i), Message: "is none of those of the token that asks"}}}
			}
		}
		if len(t.Scopes) == 0 {
			t.Scopes = slices.Clone(by.Scopes)
		}
	}
	var secret string
	secret, t.Hash = store.NewSecret("rct_")
	kept, err := s.cfg.Store.CreateToken(c.Request().Context(), t)
	return kept, secret, err
}

func (s *Server) deleteToken(c echo.Context) error {
	if err := s.cfg.Store.RevokeToken(c.Request().Context(), c.Param("id"), time.Now()); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (s *Server) pageTokens(c echo.Context) error {
	return s.tokensPage(c, http.StatusOK, web.TokensPage{Form: web.TokenForm{Role: store.RoleViewer}})
}

func (s *Server) tokensPage(c echo.Context, status int, page web.TokensPage) error {
	tokens, err := s.cfg.Store.Tokens(c.Request().Context())
	if err != nil {
		return err
	}
	page.Frame, page.Roles = s.frame(c, "/tokens"), store.Roles
	for _, t := range tokens {
		page.Tokens = append(page.Tokens, web.TokenRow{
			ID: t.ID, Name: t.Name, Role: t.Role, Scopes: t.Scopes, Since: t.CreatedAt, Expires: t.ExpiresAt,
			Expired: t.ExpiresAt != nil && !t.ExpiresAt.After(page.Now), Used: t.LastUsedAt, Revoked: t.RevokedAt,
		})
	}
	for _, scope := range store.Scopes {
		page.Scopes = append(page.Scopes, web.Tick{Value: string(scope), Label: string(scope), On: slices.Contains(page.Form.Scopes, scope)})
	}
	return s.render(c, status, page)
}

// doTokens makes a token, or revokes one.
func (s *Server) doTokens(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	switch f.text("action") {
	case "revoke":
		if err := s.cfg.Store.RevokeToken(c.Request().Context(), f.text("id"), time.Now()); err != nil {
			return err
		}
		return seeOther(c, "/tokens", "revoked")
	case "create":
		return s.addToken(c, f)
	}
	return errNoAction
}

func (s *Server) addToken(c echo.Context, f form) error {
	typed := web.TokenForm{
		Name: f.text("name"), Role: store.Role(f.text("role")), Scopes: scopesOf(f.texts("scopes")), Expires: f.text("expires_at"),
	}
	t := store.Token{Name: typed.Name, Role: typed.Role, Scopes: typed.Scopes}
	var mistakes []probe.Problem
	if typed.Expires != "" {
		day, err := time.Parse(time.DateOnly, typed.Expires)
		if err != nil {
			mistakes = append(mistakes, probe.Problem{Field: "expires_at", Message: "must be a day like 2027-01-31"})
		}
		end := day.AddDate(0, 0, 1) // the day itself is still good
		t.ExpiresAt = &end
	}
	if len(mistakes) > 0 {
		return s.tokensPage(c, http.StatusUnprocessableEntity, web.TokensPage{Form: typed, Problems: mistakes})
	}
	kept, secret, err := s.makeToken(c, t)
	if err != nil {
		p := problemOf(err)
		if p.Status >= http.StatusInternalServerError {
			return err
		}
		return s.tokensPage(c, p.Status, web.TokensPage{Form: typed, Problems: problemsOf(p)})
	}
	return s.tokensPage(c, http.StatusCreated, web.TokensPage{
		Form: web.TokenForm{Role: store.RoleViewer}, Made: &web.ShownToken{Name: kept.Name, Secret: secret},
	})
}

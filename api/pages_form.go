package api

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/probe"
)

// form is what somebody sent by a form of ours.
type form struct{ values url.Values }

// readForm reads the body of a request as a form.
func readForm(c echo.Context) (form, error) {
	r := c.Request()
	if err := r.ParseForm(); err != nil {
		if p := problemOf(err); p.Status == http.StatusRequestEntityTooLarge {
			return form{}, err
		}
		return form{}, fault(http.StatusBadRequest, "Bad form", "The form could not be read. Go back and try again.")
	}
	again(c) // bodies take the time that their senders take
	return form{r.PostForm}, nil
}

// raw returns a field exactly as it was sent, for secrets.
func (f form) raw(name string) string { return f.values.Get(name) }

// text returns a field without the white space around it, which nobody means, and without what is not text at all.
func (f form) text(name string) string { return cleaned(f.values.Get(name)) }

func cleaned(s string) string {
	return strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(s, string(utf8.RuneError)), "\x00", string(utf8.RuneError)))
}

// texts returns every value of a field.
func (f form) texts(name string) []string {
	values := make([]string, 0, len(f.values[name]))
	for _, v := range f.values[name] {
		values = append(values, cleaned(v))
	}
	return values
}

func (f form) ticked(name string) bool { return f.values.Get(name) != "" }

// setRetryAfter tells programs what the page tells people.
func setRetryAfter(c echo.Context, p *problem) {
	if p.retryAfter > 0 {
		c.Response().Header().Set("Retry-After", strconv.Itoa(int(max(1, p.retryAfter.Round(time.Second)/time.Second))))
	}
}

// problemsOf returns the mistakes that p names, or p itself where it names none.
func problemsOf(p *problem) web.Problems {
	if len(p.Errors) > 0 {
		return web.Problems(p.Errors)
	}
	return web.Problems{probe.Problem{Message: p.Detail}}
}

package alerts

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// ParseSMTPURL reads a mail server's settings from an address such as smtp://user:password@mail.example.com:587?starttls=required
// or smtps://mail.example.com. The scheme smtps means TLS from the first byte. starttls is auto (where the server offers it,
// the default), required or none; hello is the name to greet the server by. User name and password are percent-encoded as
// in any URL.
//
// The error names everything that is wrong, and never repeats the password.
func ParseSMTPURL(raw string) (EmailConfig, error) {
	u, err := url.Parse(raw)
	if err != nil { // whose words repeat the address
		return EmailConfig{}, errors.New("is not a URL like smtp://user:password@mail.example.com:587; " +
			"in user name and password, write %40 for @, %3A for :, %2F for / and %25 for %")
	}
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }

	c := EmailConfig{Host: u.Hostname(), Username: u.User.Username()}
	c.Password, _ = u.User.Password()
	switch u.Scheme {
	case "smtp":
	case "smtps":
		c.TLS = TLSImplicit
	default:
		wrong("must begin with smtp:// or smtps://")
	}
	if c.Host == "" {
		wrong("names no host")
	}
	if (c.Username == "") != (c.Password == "") {
		wrong("must have both a user name and a password, or neither")
	}
	if port := u.Port(); port != "" {
		if c.Port, err = strconv.Atoi(port); err != nil || c.Port < 1 || c.Port > 65535 {
			wrong("has a port that is not between 1 and 65535")
		}
	}
	if strings.Trim(u.Path, "/") != "" || u.Fragment != "" {
		wrong("must end behind the host and port, but for ?starttls= and &hello=")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		wrong("has settings behind ? that cannot be read")
	}
	problems = append(problems, c.applySMTP(query)...)
	if err := errors.Join(problems...); err != nil {
		return EmailConfig{}, err
	}
	return c, nil
}

// applySMTP takes over what stands behind the question mark.
func (c *EmailConfig) applySMTP(query url.Values) (problems []error) {
	for name := range query {
		if name != "starttls" && name != "hello" {
			problems = append(problems, errors.New("knows starttls and hello only behind ?"))
			break
		}
	}
	c.HelloName = query.Get("hello")
	if strings.ContainsFunc(c.HelloName, func(r rune) bool { return r <= ' ' || r > '~' }) {
		problems = append(problems, errors.New("has a hello that is not a host name"))
	}
	mode := query.Get("starttls")
	switch {
	case mode == "":
		return problems
	case c.TLS == TLSImplicit:
		return append(problems, errors.New("has no use for starttls with smtps://, which is encrypted from the first byte"))
	case !slices.Contains([]string{"auto", "required", "none"}, mode):
		return append(problems, errors.New("has a starttls that is not auto, required or none"))
	case mode == "none" && c.Username != "" && !isLoopback(c.Host):
		return append(problems, errors.New("would send the password in the clear: leave starttls=none out, or the password"))
	case mode != "auto":
		c.TLS = TLSMode(mode)
	}
	return problems
}

package api

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// cached answers with body and an ETag made of it, or with 304 when the caller has that already.
func cached(c echo.Context, contentType string, body []byte) error {
	sum := sha256.Sum256(body)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	c.Response().Header().Set("ETag", tag)
	if knows(c.Request().Header.Values("If-None-Match"), tag) {
		return c.NoContent(http.StatusNotModified)
	}
	return blob(c, http.StatusOK, contentType, body)
}

// knows reports whether an If-None-Match names tag, by the weak comparison of RFC 9110 §8.8.3.2.
func knows(headers []string, tag string) bool {
	for _, header := range headers {
		for candidate := range strings.SplitSeq(header, ",") {
			candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
			if candidate == tag || candidate == "*" {
				return true
			}
		}
	}
	return false
}

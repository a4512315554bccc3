package api

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/boombuler/barcode/qr"
	"github.com/labstack/echo/v4"
	"github.com/pquerna/otp"
	"github.com/pquerna/otp/totp"

	"github.com/rollcallhq/rollcall/api/web"
	"github.com/rollcallhq/rollcall/store"
)

// The second factor is a code of six digits that changes every 30 seconds, what every authenticator app makes (RFC 6238). A code
// is good for one step before and after its own, for clocks that differ and people who type slowly.
const (
	totpPeriod = 30 // seconds
	totpSkew   = 1  // steps
)

// newFactorSecret returns a fresh secret of 160 bits, as RFC 4226 §4 recommends.
func newFactorSecret() string {
	var b [20]byte
	rand.Read(b[:]) //nolint:errcheck // crypto/rand.Read never returns an error
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:])
}

// stepOf returns the step that a code is of; false when it is of none at about now.
func stepOf(secret, code string, now time.Time) (int64, bool) {
	options := totp.ValidateOpts{Period: totpPeriod, Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1}
	for skew := int64(-totpSkew); skew <= totpSkew; skew++ {
		at := now.Add(time.Duration(skew) * totpPeriod * time.Second)
		want, err := totp.GenerateCodeCustom(secret, at, options)
		if err == nil && subtle.ConstantTimeCompare([]byte(want), []byte(code)) == 1 {
			return at.Unix() / totpPeriod, true
		}
	}
	return 0, false
}

// Recovery codes are of 80 bits, in four groups of four letters and digits.
const (
	recoveryCodes = 10
	recoveryBytes = 10
)

func newRecoveryCodes() (codes, hashes []string) {
	for range recoveryCodes {
		var b [recoveryBytes]byte
		rand.Read(b[:]) //nolint:errcheck // crypto/rand.Read never returns an error
		text := strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
		codes = append(codes, strings.Join([]string{text[:4], text[4:8], text[8:12], text[12:]}, "-"))
		hashes = append(hashes, store.HashRecovery(text))
	}
	return codes, hashes
}

// plainCode returns a code as it was meant: people type spaces, hyphens and capitals.
func plainCode(typed string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "-", "").Replace(typed))
}

var errWrongCode = fault(http.StatusUnauthorized, "Login failed",
	"This code is not right, or was used already. Wait for the next one, and see whether the clock of your phone is right.")

// spendCode takes a code of the app, or a recovery code, that nobody can use again.
func spendCode(f *store.Factor, typed string, now time.Time) error {
	code := plainCode(typed)
	if step, ok := stepOf(f.Secret, code, now); ok && step > f.LastStep {
		f.LastStep = step
		return nil
	}
	if i := slices.Index(f.Recovery, store.HashRecovery(code)); i >= 0 && f.ConfirmedAt != nil {
		f.Recovery = slices.Delete(f.Recovery, i, i+1)
		return nil
	}
	return errWrongCode
}

// maxCode is longer than any code.
const maxCode = 40

// checkCode takes a code of a user who owes one; its errors are fit for them.
func (s *Server) checkCode(ctx context.Context, userID, typed, addr string) error {
	if typed == "" || len(typed) > maxCode {
		return errWrongCode
	}
	if wait := s.logins.waitForCode(userID); wait > 0 {
		return tooManyLogins(wait)
	}
	_, err := s.cfg.Store.UpdateFactor(ctx, userID, func(f *store.Factor) error { return spendCode(f, typed, time.Now()) })
	if p := problemOf(err); err != nil && p.Status == http.StatusUnauthorized {
		s.cfg.Log.WarnContext(ctx, "code refused", "addr", addr)
	}
	return err
}

// half is somebody who gave a good password, or came from the provider of identities, and owes a code. It is no session: nothing
// but the page that asks for the code looks at it. The browser keeps it, with our seal on it.
type half struct {
	UserID string `json:"user"`
	Until  int64  `json:"until"` // Unix time
	Next   string `json:"next"`
}

const (
	halfCookie = "rollcall_half"
	halfLife   = 10 * time.Minute
)

func (s *Server) sealHalf(h half) string {
	text, err := json.Marshal(h)
	if err != nil {
		panic(err) // texts and a number always have a JSON form
	}
	return base64.RawURLEncoding.EncodeToString(text) + "." + base64.RawURLEncoding.EncodeToString(s.halfSeal(text))
}

func (s *Server) halfSeal(text []byte) []byte {
	mac := hmac.New(sha256.New, s.halfKey)
	mac.Write(text)
	return mac.Sum(nil)
}

// halfKeyOf returns what half logins are sealed with: the same on all instances where they have a key in common.
func halfKeyOf(linkKey []byte) []byte {
	if len(linkKey) == 0 {
		linkKey = make([]byte, sha256.Size)
		rand.Read(linkKey) //nolint:errcheck // crypto/rand.Read never returns an error
	}
	mac := hmac.New(sha256.New, linkKey)
	mac.Write([]byte("half login"))
	return mac.Sum(nil)
}

// half returns who owes a code; false for nobody.
func (s *Server) half(c echo.Context) (half, bool) {
	cookie, err := c.Cookie(s.hostCookie(c, halfCookie))
	if err != nil {
		return half{}, false
	}
	body, seal, _ := strings.Cut(cookie.Value, ".")
	text, textErr := base64.RawURLEncoding.DecodeString(body)
	mac, macErr := base64.RawURLEncoding.DecodeString(seal)
	if textErr != nil || macErr != nil || !hmac.Equal(mac, s.halfSeal(text)) {
		return half{}, false
	}
	var h half
	if json.Unmarshal(text, &h) != nil || time.Now().Unix() >= h.Until {
		return half{}, false
	}
	return h, true
}

// letIn lets somebody in who proved who they are, or asks for the second factor that they have.
func (s *Server) letIn(c echo.Context, u store.User, next string) error {
	if !u.HasFactor {
		if err := s.startSession(c, u); err != nil {
			return err
		}
		return seeOther(c, next, "")
	}
	h := half{u.ID, time.Now().Add(halfLife).Unix(), next}
	s.putCookie(c, halfCookie, s.sealHalf(h), int(halfLife/time.Second))
	return seeOther(c, "/login/code", "")
}

func (s *Server) pageCode(c echo.Context) error {
	if _, owes := s.half(c); !owes {
		return seeOther(c, "/login", "")
	}
	return s.render(c, http.StatusOK, web.CodePage{Frame: s.frame(c, "")})
}

func (s *Server) doCode(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	h, owes := s.half(c)
	if !owes {
		return seeOther(c, "/login", "")
	}
	ctx := c.Request().Context()
	u, err := s.cfg.Store.User(ctx, h.UserID)
	if err == nil && u.DisabledAt != nil {
		err = errDisabled
	}
	if err == nil {
		actAs(c, u.Name, store.ActorMember) // a recovery code that is used up is worth a line
		err = s.checkCode(c.Request().Context(), u.ID, f.raw("code"), c.RealIP())
	}
	if err != nil {
		p := problemOf(err)
		if p.Status >= http.StatusInternalServerError {
			return err
		}
		setRetryAfter(c, p)
		return s.render(c, p.Status, web.CodePage{Frame: s.frame(c, ""), Problem: p.Detail})
	}
	s.putCookie(c, halfCookie, "", -1)
	if err := s.startSession(c, u); err != nil {
		return err
	}
	return seeOther(c, safeNext(h.Next), "")
}

// quietZone is the white margin that a QR code needs on each side, in modules (ISO/IEC 18004).
const quietZone = 4

// qrCode draws a text as a QR code, a path of squares of one unit.
func qrCode(text string) (web.QR, error) {
	code, err := qr.Encode(text, qr.M, qr.Auto)
	if err != nil {
		return web.QR{}, err
	}
	size := code.Bounds().Dx()
	var path strings.Builder
	for y := range size {
		for x := range size {
			if r, _, _, _ := code.At(x, y).RGBA(); r == 0 {
				fmt.Fprintf(&path, "M%d %dh1v1h-1z", x+quietZone, y+quietZone)
			}
		}
	}
	return web.QR{Size: size + 2*quietZone, Path: path.String()}, nil
}

// enrolment returns what an app needs to make codes: as a QR code to be scanned, and as a text to be typed.
func (s *Server) enrolment(c echo.Context, u store.User, f store.Factor) (*web.Enrolment, error) {
	secret, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(f.Secret)
	if err != nil {
		return nil, internal(fmt.Errorf("secret of a second factor: %w", err))
	}
	key, err := totp.Generate(totp.GenerateOpts{
		Issuer: "Rollcall (" + c.Request().Host + ")", AccountName: strings.ReplaceAll(u.Name, ":", " "),
		Period: totpPeriod, Secret: secret, Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1,
	})
	if err != nil {
		return nil, internal(fmt.Errorf("describe a second factor: %w", err))
	}
	code, err := qrCode(key.URL())
	if err != nil {
		return nil, internal(fmt.Errorf("draw a second factor: %w", err))
	}
	return &web.Enrolment{QR: code, Secret: inFours(f.Secret)}, nil
}

// inFours parts a text into groups that people can copy.
func inFours(text string) string {
	var groups []string
	for group := range slices.Chunk([]byte(text), 4) {
		groups = append(groups, string(group))
	}
	return strings.Join(groups, " ")
}

package store_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
)

func sealer(t testing.TB, b byte) *store.Sealer {
	t.Helper()
	s, err := store.NewSealer(bytes.Repeat([]byte{b}, store.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestASealedSecretOpensWithItsKeyInItsPlaceOnly(t *testing.T) {
	s := sealer(t, 1)
	sealed := s.Seal([]byte("s3cret"), "endpoint/a")
	if bytes.Contains(sealed, []byte("s3cret")) {
		t.Errorf("sealed = %q, which shows the secret", sealed)
	}
	if plain, err := s.Open(sealed, "endpoint/a"); err != nil || string(plain) != "s3cret" {
		t.Errorf("Open = %q, %v, want the secret", plain, err)
	}
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	for name, open := range map[string]func() ([]byte, error){
		"another key":   func() ([]byte, error) { return sealer(t, 2).Open(sealed, "endpoint/a") },
		"another place": func() ([]byte, error) { return s.Open(sealed, "endpoint/b") },
		"changed since": func() ([]byte, error) { return s.Open(changed, "endpoint/a") },
		"cut short":     func() ([]byte, error) { return s.Open(sealed[:10], "endpoint/a") },
		"nothing":       func() ([]byte, error) { return s.Open(nil, "endpoint/a") },
	} {
		if plain, err := open(); !errors.Is(err, store.ErrWrongKey) {
			t.Errorf("%s: Open = %q, %v, want ErrWrongKey", name, plain, err)
		}
	}
}

func TestTheSameSecretIsNeverSealedAlike(t *testing.T) {
	s := sealer(t, 1)
	if bytes.Equal(s.Seal([]byte("x"), "p"), s.Seal([]byte("x"), "p")) {
		t.Error("two seals of one secret are equal: they tell that the secrets are")
	}
}

func TestAKeyIsReadHoweverItsBase64IsWritten(t *testing.T) {
	key := bytes.Repeat([]byte{0xfb, 0xff}, store.KeySize/2)
	for _, text := range []string{
		base64.StdEncoding.EncodeToString(key),
		base64.RawStdEncoding.EncodeToString(key),
		base64.URLEncoding.EncodeToString(key),
		" " + base64.RawURLEncoding.EncodeToString(key) + "\n",
	} {
		if got, err := store.ParseKey(text); err != nil || !bytes.Equal(got, key) {
			t.Errorf("ParseKey(%q) = %x, %v, want %x", text, got, err, key)
		}
	}
	for _, text := range []string{"", "short", strings.Repeat("A", 100), "not base64 at all, but it is long enough!!"} {
		if _, err := store.ParseKey(text); err == nil || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("ParseKey(%q): error %v, want one that does not repeat it", text, err)
		}
	}
	if _, err := store.NewSealer([]byte("short")); err == nil {
		t.Error("NewSealer took a short key")
	}
}

func TestSecretsOfEndpointsAndChannels(t *testing.T) {
	s := sealer(t, 1)
	headers := []probe.Header{{Name: "Authorization", Value: "Bearer x", Secret: true}}
	sealed, err := s.SealHeaders("ep_a", headers)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.OpenHeaders("ep_a", sealed); err != nil || !cmp.Equal(got, headers) {
		t.Errorf("OpenHeaders = %v, %v, want %v", got, err, headers)
	}
	// Who can write to the database cannot move one endpoint's key to an endpoint of their own.
	if _, err := s.OpenHeaders("ep_b", sealed); !errors.Is(err, store.ErrWrongKey) || !strings.Contains(err.Error(), "ep_b") {
		t.Errorf("OpenHeaders of another endpoint: error %v, want ErrWrongKey that names it", err)
	}
	if got, err := s.OpenSecrets("ch_a", nil); err != nil || got != nil {
		t.Errorf("OpenSecrets of nothing = %v, %v, want nothing", got, err)
	}
}

func TestAKeyIsKnownAgain(t *testing.T) {
	proof := sealer(t, 1).SealProof()
	if err := sealer(t, 1).CheckProof(proof); err != nil {
		t.Errorf("CheckProof with the key: %v", err)
	}
	if err := sealer(t, 2).CheckProof(proof); !errors.Is(err, store.ErrWrongKey) {
		t.Errorf("CheckProof with another key: error %v, want ErrWrongKey", err)
	}
}

package store

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rollcallhq/rollcall/probe"
)

// SealHeaders returns the headers of an endpoint as a database may keep them; nil when there are none. Names are sealed
// with the values: they say where an endpoint's keys go.
func (s *Sealer) SealHeaders(endpointID string, headers []probe.Header) ([]byte, error) {
	if len(headers) == 0 {
		return nil, nil
	}
	plain, err := json.Marshal(headers)
	if err != nil {
		return nil, err
	}
	return s.Seal(plain, "endpoint/"+endpointID), nil
}

// OpenHeaders gives back what SealHeaders was given. Its error is ErrWrongKey when the key is another one.
func (s *Sealer) OpenHeaders(endpointID string, sealed []byte) ([]probe.Header, error) {
	var headers []probe.Header
	if err := s.openJSON(sealed, "endpoint/"+endpointID, &headers); err != nil {
		return nil, fmt.Errorf("headers of endpoint %s: %w", endpointID, err)
	}
	return headers, nil
}

// SealSecrets returns the secrets of a channel as a database may keep them; nil when there are none.
func (s *Sealer) SealSecrets(channelID string, secrets map[string]string) ([]byte, error) {
	if len(secrets) == 0 {
		return nil, nil
	}
	plain, err := json.Marshal(secrets)
	if err != nil {
		return nil, err
	}
	return s.Seal(plain, "channel/"+channelID), nil
}

// OpenSecrets gives back what SealSecrets was given. Its error is ErrWrongKey when the key is another one.
func (s *Sealer) OpenSecrets(channelID string, sealed []byte) (map[string]string, error) {
	var secrets map[string]string
	if err := s.openJSON(sealed, "channel/"+channelID, &secrets); err != nil {
		return nil, fmt.Errorf("secrets of channel %s: %w", channelID, err)
	}
	return secrets, nil
}

func (s *Sealer) openJSON(sealed []byte, place string, into any) error {
	if len(sealed) == 0 {
		return nil
	}
	plain, err := s.Open(sealed, place)
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, into)
}

// keyPlace is where a database keeps proof of the key that it was first opened with.
const keyPlace = "key"

// SealProof returns what a database keeps to know its key again.
func (s *Sealer) SealProof() []byte { return s.Seal([]byte(keyPlace), keyPlace) }

// CheckProof returns an ErrWrongKey in words for the operator when proof was sealed with another key.
func (s *Sealer) CheckProof(proof []byte) error {
	if _, err := s.Open(proof, keyPlace); err != nil {
		return fmt.Errorf("the database was made with another secret key, give it that one, "+
			"or run `rollcall migrate --forget-secrets` if it is lost: %w", err)
	}
	return nil
}

// Forgotten names what has to be entered again in a database whose secret key was lost.
type Forgotten struct {
	Endpoints []string // slugs of those that had headers or options, in order
	Channels  []string // names of those that had secrets, in order
	Members   []string // names of those who had a second factor, in order: none is asked for until they set it up again
}

// WhyForgotten is why a channel is broken whose secrets were forgotten.
const WhyForgotten = "its secrets were forgotten: enter them again"

// ErrKeyFits means that nothing was forgotten, because the key given is the one that the secrets are sealed with.
var ErrKeyFits = errors.New("the secrets can be read with this key: nothing was forgotten")

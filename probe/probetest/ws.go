package probetest

import (
	"crypto/sha1" //nolint:gosec // RFC 6455 §4.2.2 wants it
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// stepUpgrade is the step of a WebSocket's handshake, for faults.
const stepUpgrade = "upgrade"

// WebSocket carries the messages of backend over a WebSocket, one per frame, at ws://…, or wss://… with [OverTLS].
// Faults of the backend at the step "upgrade", and those at any step, are faults of the handshake, too.
func WebSocket(t testing.TB, backend *Server, faults ...CarrierFault) *Carrier {
	t.Helper()
	c := newCarrier(t, backend, "tcp", "127.0.0.1:0", (*carried).serveWebSocket, faults)
	u, err := url.Parse(backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Scheme, u.Host = "ws", c.l.Addr().String()
	if c.cert != nil {
		u.Scheme = "wss"
	}
	c.URL = u.String()
	return c
}

// serveWebSocket switches protocols and answers messages until the client leaves.
func (p *carried) serveWebSocket() {
	if p.upgrade() != nil {
		return
	}
	p.ws = true
	if p.c.plan.greeting != "" {
		if p.writeFrame(opText, []byte(p.c.plan.greeting)) != nil {
			return
		}
	}
	p.answerAll(p.readFrames)
}

// upgrade answers the handshake.
func (p *carried) upgrade() error {
	r, err := http.ReadRequest(p.in)
	if err != nil {
		return err
	}
	r = r.WithContext(p.ctx)
	request := readRequest(r, nil)
	request.Step = stepUpgrade
	w := &recorder{header: http.Header{}, conn: p.conn}
	if err := p.c.backend.answerCarried(r, request, w, (*exchange).answerUpgrade); err != nil || w.aborted {
		return errDropped
	}
	w.header.Del("Content-Length")
	answer := &http.Response{StatusCode: w.status, ProtoMajor: 1, ProtoMinor: 1, Header: w.header, ContentLength: int64(w.body.Len()), Body: io.NopCloser(&w.body)}
	if w.status == http.StatusSwitchingProtocols {
		answer.ContentLength, answer.Body = 0, nil
	}
	if err := answer.Write(p.conn); err != nil {
		return err
	}
	if w.status != http.StatusSwitchingProtocols {
		return errDropped
	}
	return nil
}

// answerUpgrade agrees to a WebSocket, as strictly as its specification wants (RFC 6455 §4.2.1).
func (x *exchange) answerUpgrade() {
	h := x.Header
	switch {
	case !strings.EqualFold(h.Get("Upgrade"), "websocket") || !strings.EqualFold(h.Get("Connection"), "upgrade"):
		x.plain(http.StatusUpgradeRequired, "text/plain", "Upgrade Required")
	case x.HTTPMethod != http.MethodGet || h.Get("Sec-WebSocket-Version") != "13" || h.Get("Sec-WebSocket-Key") == "":
		x.plain(http.StatusBadRequest, "text/plain", "Bad Request")
	default:
		x.status = http.StatusSwitchingProtocols
		x.header.Set("Upgrade", "websocket")
		x.header.Set("Connection", "Upgrade")
		sum := sha1.Sum([]byte(h.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // as above
		x.header.Set("Sec-WebSocket-Accept", base64.StdEncoding.EncodeToString(sum[:]))
		if name, _, _ := strings.Cut(h.Get("Sec-WebSocket-Protocol"), ","); name != "" {
			x.header.Set("Sec-WebSocket-Protocol", strings.TrimSpace(name))
		}
	}
}

// The opcodes of frames (RFC 6455 §5.2).
const (
	opContinuation = 0x0
	opText         = 0x1
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xA
)

// writeFrame sends one message in one frame, or in several.
func (p *carried) writeFrame(opcode byte, payload []byte) error {
	if !p.c.plan.fragments || len(payload) < 2 {
		return p.write(append(frameHead(0x80|opcode, len(payload)), payload...))
	}
	half := len(payload) / 2
	b := append(frameHead(opcode, half), payload[:half]...)
	b = append(append(b, frameHead(0x80|opPing, 2)...), "hi"...)
	b = append(append(b, frameHead(0x80|opContinuation, len(payload)-half)...), payload[half:]...)
	return p.write(b)
}

// frameHead is the beginning of a frame: its first byte, and its length in the shortest form.
func frameHead(first byte, length int) []byte {
	switch {
	case length < 126:
		return []byte{first, byte(length)}
	case length < 1<<16:
		return binary.BigEndian.AppendUint16([]byte{first, 126}, uint16(length))
	default:
		return binary.BigEndian.AppendUint64([]byte{first, 127}, uint64(length))
	}
}

// sendClose sends a close frame and waits until the client has gone.
func (p *carried) sendClose(end closing) error {
	payload := binary.BigEndian.AppendUint16(nil, uint16(end.code))
	payload = append(payload, end.reason...)
	if err := p.write(append(frameHead(0x80|opClose, len(payload)), payload...)); err != nil {
		return err
	}
	<-p.ctx.Done()
	return errDropped
}

// readFrames reads frames up to the end of a message.
func (p *carried) readFrames() ([]byte, error) {
	var message []byte
	for {
		head, payload, err := p.readFrame()
		if err != nil {
			if !errors.Is(err, errDropped) {
				p.c.ended("dropped")
			}
			return nil, err
		}
		switch head & 0x0F {
		case opPing, opPong:
		case opClose:
			if err := p.closedBy(payload); err != nil {
				return nil, err
			}
		default:
			message = append(message, payload...)
			if head&0x80 != 0 {
				return message, nil
			}
		}
	}
}

// closedBy answers a client's close frame.
func (p *carried) closedBy(payload []byte) error {
	code := "no code"
	if len(payload) >= 2 {
		code = fmt.Sprint(binary.BigEndian.Uint16(payload))
	}
	p.c.ended(code)
	if p.c.plan.rude {
		_, _ = io.Copy(io.Discard, p.in) // until the client drops the connection
		return errDropped
	}
	_ = p.write(append(frameHead(0x80|opClose, len(payload)), payload...))
	return errDropped
}

// readFrame reads one frame of a client, which must be masked.
func (p *carried) readFrame() (head byte, payload []byte, err error) {
	var b [8]byte
	if _, err := io.ReadFull(p.in, b[:2]); err != nil {
		return 0, nil, err
	}
	head = b[0]
	length := uint64(b[1] & 0x7F)
	if b[1]&0x80 == 0 {
		return 0, nil, errors.New("a client's frame without a mask")
	}
	switch length {
	case 126:
		_, err = io.ReadFull(p.in, b[:2])
		length = uint64(binary.BigEndian.Uint16(b[:2]))
	case 127:
		_, err = io.ReadFull(p.in, b[:8])
		length = binary.BigEndian.Uint64(b[:8])
	}
	if err != nil || length > maxRequest {
		return 0, nil, errors.New("a client's frame that cannot be read")
	}
	var mask [4]byte
	if _, err := io.ReadFull(p.in, mask[:]); err != nil {
		return 0, nil, err
	}
	payload = make([]byte, length)
	if _, err := io.ReadFull(p.in, payload); err != nil {
		return 0, nil, err
	}
	for i := range payload {
		payload[i] ^= mask[i%4]
	}
	return head, payload, nil
}

package web

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
)

// leastCompressed is the size below which compressing saves no packet.
const leastCompressed = 1400

// Compressed returns body as gzip and says so in the header, where whoever asks takes it and it is worth it; otherwise body.
func Compressed(w http.ResponseWriter, r *http.Request, body []byte) []byte {
	w.Header().Add("Vary", "Accept-Encoding")
	if len(body) < leastCompressed || !takesGzip(r) {
		return body
	}
	packed := pack(body, gzip.BestSpeed)
	w.Header().Set("Content-Encoding", "gzip")
	return packed
}

// pack compresses body, which never fails in memory.
func pack(body []byte, level int) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, level)
	if err != nil {
		panic(err) // the levels are constants
	}
	_, _ = w.Write(body)
	_ = w.Close()
	return b.Bytes()
}

// takesGzip reports whether an Accept-Encoding names gzip (RFC 9110 §12.5.3) and does not rule it out.
func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		coding, weight, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			weight = strings.ReplaceAll(weight, " ", "")
			return strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
		}
	}
	return false
}

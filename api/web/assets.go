package web

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
)

// file is one static file as it is sent.
type file struct {
	body    []byte
	packed  []byte // as gzip; nil where that is not smaller
	mime    string
	version string // of its content, for ETag and address
}

// assets are the files of static/ by name.
var assets = loadAssets()

// types are given here because the system's own table of types may lack them or differ.
var types = map[string]string{
	".css": "text/css; charset=utf-8",
	".ico": "image/vnd.microsoft.icon",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

func loadAssets() map[string]file {
	entries, err := fs.ReadDir(files, "static")
	if err != nil {
		panic(err) // static/ is part of the program
	}
	loaded := make(map[string]file, len(entries))
	for _, e := range entries {
		body, err := files.ReadFile("static/" + e.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(body)
		kind := types[path.Ext(e.Name())]
		if kind == "" {
			kind = mime.TypeByExtension(path.Ext(e.Name()))
		}
		loaded[e.Name()] = file{body, packedFile(body), kind, hex.EncodeToString(sum[:6])}
	}
	return loaded
}

// packedFile returns a file as gzip, nil where that saves nothing.
func packedFile(body []byte) []byte {
	if packed := pack(body, gzip.BestCompression); len(packed) < len(body) {
		return packed
	}
	return nil
}

// asset returns the address of a static file, which changes with its content.
func asset(name string) string {
	return "/static/" + name + "?v=" + assets[name].version
}

// ServeStatic answers with the static file of that name and reports whether there is one. A file asked for by its
// versioned address may be kept for ever; any other is asked for again each time, at the price of a 304.
func ServeStatic(w http.ResponseWriter, r *http.Request, name string) bool {
	f, ok := assets[name]
	if !ok {
		return false
	}
	h := w.Header()
	h.Set("Content-Type", f.mime)
	h.Set("Etag", `"`+f.version+`"`)
	h.Add("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == f.version {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if r.Header.Get("If-None-Match") == `"`+f.version+`"` {
		w.WriteHeader(http.StatusNotModified)
		return true
	}
	body := f.body
	if f.packed != nil && takesGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = f.packed
	}
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the reader has gone: nobody is left to tell
	}
	return true
}

package main

import (
	"context"
	"io"
	"strings"

	"github.com/rollcallhq/rollcall/store"
)

// Run does in this process what the command line says and returns the exit code, so that a benchmark can look into the
// whole service. Besides the KEY=value pairs of env the environment is empty.
func Run(ctx context.Context, env []string, log io.Writer, args ...string) (code int) {
	return run(ctx, args, testStdio(env, log))
}

// OpenStore opens the database that --database names, as a command would.
func OpenStore(ctx context.Context, env []string, database string) (store.Store, error) {
	return openStore(ctx, database, testStdio(env, io.Discard))
}

func testStdio(env []string, log io.Writer) stdio {
	return stdio{in: strings.NewReader(""), out: log, err: log, env: func(name string) (string, bool) {
		for _, pair := range env {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value, true
			}
		}
		return "", false
	}}
}

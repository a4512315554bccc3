package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// healthcheck asks the service on this machine whether it is alive, for containers that have no other program to ask. It
// does not ask whether it is ready: whoever restarts a service because its database is away loses the checks that wait.
func healthcheck(ctx context.Context, args []string, std stdio) error {
	var listen string
	var timeout time.Duration
	fs := newFlags("healthcheck", "healthcheck [flags]", std)
	fs.StringVar(&listen, "listen", defaultListen, "`address` the service listens on")
	fs.DurationVar(&timeout, "timeout", 5*time.Second, "`duration` to wait for an answer")
	if err := fs.parseAlone(args); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return usageError{fmt.Errorf("--listen must be an address and a port, like 127.0.0.1:8080 or :8080")}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/healthz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if err != nil {
		return err
	}
	fmt.Fprintf(std.out, "%s\n", body)
	if resp.StatusCode != http.StatusOK {
		return exit(exitFailed)
	}
	return nil
}

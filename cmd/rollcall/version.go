package main

import (
	"context"
	"fmt"
	"runtime/debug"
)

// version is set by the linker in a release (-ldflags "-X main.version=…").
var version = ""

// versionString returns the version of this program: what the linker said, else what `go install` noted, else "devel".
func versionString() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

func printVersion(_ context.Context, args []string, std stdio) error {
	if err := newFlags("version", "version", std).parseAlone(args); err != nil {
		return err
	}
	fmt.Fprintf(std.out, "rollcall %s\n", versionString())
	return nil
}

package main_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestTheAlertRulesNameMetricsThatThereAre(t *testing.T) {
	known := map[string]bool{}
	for _, room := range []string{"scheduler", "alerts", "api", "cmd/rollcall"} {
		files, err := filepath.Glob(filepath.Join(root, room, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for _, name := range metricNames(t, file) {
				known[name] = true
			}
		}
	}
	expressions := regexp.MustCompile(`rollcall_[a-z_]+`).FindAllString(readFile(t, "deploy/prometheus-rules.yaml"), -1)
	for _, name := range expressions {
		if !known[strings.TrimSuffix(name, "_bucket")] {
			t.Errorf("deploy/prometheus-rules.yaml asks for %s, which nothing measures", name)
		}
	}
	if len(expressions) == 0 {
		t.Error("deploy/prometheus-rules.yaml asks for nothing")
	}
}

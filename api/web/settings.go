package web

import (
	"strings"
	"time"
)

// SettingsPage is how the service was started.
type SettingsPage struct {
	Frame
	Location  string
	PublicURL string // empty where it was not told
	Since     time.Time
	Rows      []SettingRow
}

func (SettingsPage) template() string { return "settings" }

// SettingRow is one setting.
type SettingRow struct {
	Flag, Variable string
	Usage          string // in English, with backquotes around a word that stands for the value
	Value          string
	Hidden         bool   // the value is not shown
	Given          bool   // it is not the default
	Origin         string // in English
}

// unquoted leaves out the backquotes that package flag wants around a word.
func unquoted(usage string) string { return strings.ReplaceAll(usage, "`", "") }

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rollcallhq/rollcall/probe"
)

// splitCommand splits a command as a shell would, by white space outside of quotes: 'single' quotes keep everything as it
// is, "double" quotes and a bare word know the backslash. Nothing is expanded: no variables, no wildcards, no pipes.
func splitCommand(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord := false
	var quote rune
	runes := []rune(text)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case r == '\\' && quote != '\'':
			if i++; i == len(runes) {
				return nil, errors.New("ends with a backslash")
			}
			if quote == '"' && runes[i] != '"' && runes[i] != '\\' {
				word.WriteRune('\\')
			}
			word.WriteRune(runes[i])
			inWord = true
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case strings.ContainsRune(" \t\r\n", r):
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("has no closing %c", quote)
	}
	if inWord {
		words = append(words, word.String())
	}
	if len(words) == 0 {
		return nil, errors.New("names no program")
	}
	return words, nil
}

// envFlag collects variables as they are typed, 'NAME=value'. Like headerFlag it never fails and treats every value as a
// secret.
type envFlag []string

func (e *envFlag) String() string { return "" }

func (e *envFlag) Set(text string) error {
	*e = append(*e, text)
	return nil
}

func (e envFlag) variables() (variables []probe.Header, mistakes []error) {
	for _, text := range e {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			mistakes = append(mistakes, errors.New("--env must be written like NAME=value"))
			continue
		}
		variables = append(variables, probe.Header{Name: name, Value: value, Secret: true})
	}
	return variables, mistakes
}

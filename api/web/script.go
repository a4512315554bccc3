package web

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strconv"
)

// scriptSentences are what the modules in static/ say, by their English; see words.js.
var scriptSentences = readScripts()

// scriptSay is a call of the function that says something, in a module.
var scriptSay = regexp.MustCompile(`\bsay\(("(?:[^"\\]|\\.)*")`)

func readScripts() []string {
	var sentences []string
	for name, f := range assets {
		if path.Ext(name) != ".js" {
			continue
		}
		for _, found := range scriptSay.FindAllSubmatch(f.body, -1) {
			key, err := strconv.Unquote(string(found[1]))
			if err != nil {
				panic(err) // static/ is part of the program
			}
			sentences = append(sentences, key)
		}
	}
	slices.Sort(sentences)
	return slices.Compact(sentences)
}

// script is what the catalogue has of scriptSentences, as JSON; empty when there is nothing.
func (l Language) script() (string, error) {
	said := map[string]any{}
	for _, key := range scriptSentences {
		switch s := l.sentences[key]; {
		case s.forms != nil:
			said[key] = s.forms
		case s.text != "":
			said[key] = s.text
		}
	}
	if len(said) == 0 {
		return "", nil
	}
	data, err := json.Marshal(said)
	return string(data), err
}
